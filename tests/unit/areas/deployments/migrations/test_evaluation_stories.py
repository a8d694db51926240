"""Migrations as people write them: several statements, judged together."""

import pytest

from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.migrations import files, runner, scratch
from tests.unit.areas.deployments.migrations.conftest import Evaluate

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")

STORIES = {
    "a new table with its index and key": (
        "BEFORE",
        (
            "CREATE TABLE o (id int PRIMARY KEY, pid int REFERENCES p, at timestamptz);"
            "CREATE INDEX o_at ON o (at); INSERT INTO o VALUES (1, 1, now()); UPDATE o SET pid = 2;"
        ),
    ),
    "an empty table rewritten": (
        "BEFORE",
        "ALTER TABLE empty ALTER a TYPE bigint; ALTER TABLE empty ADD UNIQUE (b);",
    ),
    "a column in the steps of a careful author": (
        "BEFORE",
        "ALTER TABLE t ADD COLUMN z int; ALTER TABLE t ADD CHECK (z > 0) NOT VALID;",
    ),
    "a scan after a lock": (
        "DOWNTIME",
        "ALTER TABLE t ADD COLUMN z int; ALTER TABLE t VALIDATE CONSTRAINT ck_nv;",
    ),
    "a lock after a scan": (
        "BEFORE",
        "ALTER TABLE t VALIDATE CONSTRAINT ck_nv; ALTER TABLE t ADD COLUMN z int;",
    ),
    "two transactions of its own": (
        "BEFORE",
        (
            "BEGIN; ALTER TABLE t ADD COLUMN z int; COMMIT;"
            "BEGIN; ALTER TABLE t VALIDATE CONSTRAINT ck_nv; COMMIT;"
        ),
    ),
    "a slow read under a lock": (
        "DOWNTIME",
        "ALTER TABLE t ADD COLUMN z int; CREATE MATERIALIZED VIEW m AS SELECT * FROM p;",
    ),
    "a backfill in one go": ("DOWNTIME", "UPDATE t SET c = 'x' WHERE c IS NULL;"),
    "a batch by the key": ("BEFORE", "UPDATE t SET c = 'x' WHERE id BETWEEN 1 AND 1000;"),
    "an open range": ("DOWNTIME", "UPDATE t SET c = 'x' WHERE id > 0;"),
    "a batch by limit": (
        "BEFORE",
        "UPDATE t SET c = 'x' WHERE id IN (SELECT id FROM t WHERE c IS NULL LIMIT 1000);",
    ),
    "one row deleted": ("BEFORE", "DELETE FROM t WHERE id = 7;"),
    "seeds": ("BEFORE", "INSERT INTO p VALUES (9001), (9002) ON CONFLICT DO NOTHING;"),
    "a rename with a view in its place": (
        "DOWNTIME",
        "ALTER TABLE t RENAME TO things; CREATE VIEW t AS SELECT * FROM things;",
    ),
    "a block that looks at the catalogue": (
        "BEFORE",
        (
            "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 't'::regclass AND"
            " attname = 'z') THEN ALTER TABLE t ADD COLUMN z int; END IF; END $$;"
        ),
    ),
    "a block that drops by stealth": (
        "DOWNTIME",
        "DO $$ BEGIN EXECUTE 'ALTER TABLE t DROP ' || 'COLUMN c'; END $$;",
    ),
    "a block that depends on rows": (
        "DOWNTIME",
        (
            "DO $$ DECLARE r record; BEGIN FOR r IN SELECT id FROM t LOOP"
            " UPDATE t SET c = 'x' WHERE id = r.id; END LOOP; END $$;"
        ),
    ),
    "a required column on an empty table": (
        "DOWNTIME",
        "ALTER TABLE empty ADD COLUMN z int NOT NULL;",
    ),
    "rights taken": (
        "DOWNTIME",
        "GRANT SELECT ON t TO fairlead_test_reader; REVOKE SELECT ON t FROM fairlead_test_reader;",
    ),
    "a function replaced": (
        "BEFORE",
        (
            "CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS"
            " 'BEGIN NEW.c := 1; RETURN NEW; END';"
        ),
    ),
    "a unique index dropped": ("DOWNTIME", "DROP INDEX t_uq;"),
    "housekeeping": (
        "PARALLEL",
        "SET lock_timeout = '1s'; COMMENT ON TABLE t IS 'things'; ANALYZE t;",
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_migration_is_judged_as_a_whole(evaluate: Evaluate, story: str) -> None:
    impact, sql = STORIES[story]

    found = evaluate(sql)

    assert found.impact is Impact(impact), found


def test_a_migration_sees_those_before_it(evaluate: Evaluate) -> None:
    found = evaluate(
        "ALTER TYPE en ADD VALUE 'c'", "CREATE TABLE e (x en DEFAULT 'c'); SELECT 'c'::en"
    )

    assert found.impact is Impact.BEFORE, found


def test_a_careful_author_needs_no_downtime(evaluate: Evaluate) -> None:
    found = evaluate(
        "ALTER TABLE t ADD CONSTRAINT fk FOREIGN KEY (pid) REFERENCES p NOT VALID",
        "ALTER TABLE t VALIDATE CONSTRAINT fk",
        "CREATE UNIQUE INDEX CONCURRENTLY t_pid ON t (pid)",
        "ALTER TABLE t ADD CONSTRAINT t_pid_key UNIQUE USING INDEX t_pid",
    )

    assert [each.impact.value for each in found.statements] == [
        *("BEFORE", "PARALLEL", "PARALLEL", "BEFORE")
    ], found


def test_what_fails_is_the_worst_and_so_is_all_after_it(evaluate: Evaluate) -> None:
    found = evaluate("SELECT 1; SELEC 2; SELECT 3", "SELECT 4")

    assert [each.impact.value for each in found.statements] == ["PARALLEL", *["DOWNTIME"] * 3]
    assert found.statements[1].reasons == ('cannot be evaluated: syntax error at or near "SELEC"',)
    assert found.statements[3].reasons == ("cannot be evaluated: an earlier statement failed",)


@pytest.mark.parametrize(
    ("here", "sql"),
    [
        ("FOREIGN TABLE far (id int) SERVER there", "DROP FOREIGN TABLE IF EXISTS far"),
        (
            "FUNCTION native(int) RETURNS int LANGUAGE c AS '$libdir/plpgsql', 'plpgsql_validator'",
            "DROP FUNCTION IF EXISTS native(int)",
        ),
    ],
    ids=["a foreign table", "an untrusted language"],
)
def test_what_the_copy_lacks_is_downtime_with_that_reason(
    evaluate: Evaluate, target: str, here: str, sql: str
) -> None:
    with scratch.admin(target) as connection:
        connection.execute("CREATE FOREIGN DATA WRAPPER w")
        connection.execute("CREATE SERVER there FOREIGN DATA WRAPPER w")
        connection.execute(f"CREATE {here}".encode())

    found = evaluate(sql)

    assert found.impact is Impact.DOWNTIME
    assert found.statements[0].impact is Impact.PARALLEL, "it passes over what is not there"
    assert found.reasons[0].startswith(
        f"cannot be evaluated without CREATE {here.split(maxsplit=1)[0]}"
    )


def test_an_extension_that_the_server_of_the_copy_lacks_is_downtime(
    evaluate: Evaluate, target: str, counting: str
) -> None:
    with scratch.admin(counting) as connection:
        connection.execute("CREATE EXTENSION counting")

    found = evaluate("DROP FUNCTION IF EXISTS counted()")

    assert found.impact is Impact.DOWNTIME
    assert found.reasons[0].startswith("cannot be evaluated without extension counting 1: ")


def test_an_extension_that_both_servers_have_is_in_the_copy(
    evaluate: Evaluate, target: str
) -> None:
    with scratch.admin(target) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE TABLE near (id int PRIMARY KEY, at vector(3))")

    found = evaluate("ALTER TABLE near ADD COLUMN to_ vector(3)")

    assert (found.impact, found.reasons) == (Impact.BEFORE, ())


def test_nothing_pending_is_nothing(evaluate: Evaluate) -> None:
    assert evaluate().impact is Impact.NOP


def test_what_was_applied_is_not_evaluated_again(evaluate: Evaluate, target: str) -> None:
    drop = "ALTER TABLE t DROP COLUMN c"
    runner.run(target, [files.Migration("0", "0_test.sql", drop)])

    assert evaluate(drop).impact is Impact.NOP
    assert evaluate(drop, "ALTER TABLE t ADD COLUMN c int").impact is Impact.BEFORE


def test_units_are_what_the_runner_runs() -> None:
    found = files.Migration("1", "1.sql", "SELECT 1; VACUUM; SELECT 2; COMMIT; SELECT 3").units()

    assert [(len(each.statements), each.transactional) for each in found] == [
        *((1, True), (1, False), (1, True), (1, True))
    ]
