import json
from pathlib import Path

import pytest

from tests.unit.areas.deployments.migrations.conftest import dumped
from tests.unit.cli.conftest import Run

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")


def test_evaluate_says_the_class_and_changes_nothing(
    run: Run, target: str, pg_dump: str, tmp_path: Path
) -> None:
    (tmp_path / "0001_add.sql").write_text("ALTER TABLE t ADD COLUMN z int;")
    (tmp_path / "0002_index.sql").write_text("CREATE INDEX i ON t (c);")
    before = dumped(pg_dump, target)

    ran = run(
        *("migrations", "evaluate", "--database-url", target, "--pg-dump", pg_dump),
        *("-o", "json", str(tmp_path)),
    )

    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert said["class"] == "DOWNTIME"
    assert [each["class"] for each in said["statements"]] == ["BEFORE", "DOWNTIME"]
    assert said["statements"][1] == {
        "sql": "CREATE INDEX i ON t (c)",
        "class": "DOWNTIME",
        "locks": [{"relation": "t", "mode": "ShareLock"}],
        "rewrite": False,
        "scan": True,
        "reasons": [
            "scans t (about 2000 rows) while ShareLock on t blocks writes",
            "ShareLock on t, held until commit",
        ],
        "suggestion": "CREATE INDEX CONCURRENTLY, in a migration of its own",
    }
    assert dumped(pg_dump, target) == before


def test_evaluate_tells_people_why_and_what_is_safer(
    run: Run, target: str, pg_dump: str, tmp_path: Path
) -> None:
    file = tmp_path / "1_drop.sql"
    file.write_text("ALTER TABLE t DROP COLUMN c;")

    ran = run("migrations", "evaluate", "--database-url", target, "--pg-dump", pg_dump, str(file))

    assert ran.out.startswith("DOWNTIME\n")
    assert "column t.c is gone" in ran.out
    assert "safer: first let the running version do without it" in ran.out


def test_a_password_is_never_told(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "1_drop.sql"
    file.write_text("SELECT 1")

    ran = run(
        *("migrations", "evaluate", "--database-url", "postgresql://me:s3cret@127.0.0.1:1/x"),
        str(file),
    )

    assert ran.code == 7
    assert "cannot reach the database: 127.0.0.1/x" in ran.err
    assert "s3cret" not in ran.err + ran.out


def test_run_applies_and_status_shows_it(run: Run, postgres_url: str, tmp_path: Path) -> None:
    (tmp_path / "0001_add.sql").write_text("CREATE TABLE shop (id int);")
    where = ("--database-url", postgres_url, str(tmp_path))

    before = run("migrations", "status", "-o", "json", *where)
    ran = run("migrations", "run", *where)
    after = run("migrations", "status", *where)
    again = run("migrations", "run", *where)

    assert json.loads(before.out) == [
        {"version": "0001", "name": "0001_add.sql", "state": "pending"}
    ]
    assert "applied: 0001_add.sql" in ran.err
    assert "0001     applied  0001_add.sql" in after.out
    assert "nothing is pending" in again.err
