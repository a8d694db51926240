"""The runner on a real PostgreSQL: order, records, crashes, locks and a second runner."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from fairlead import errors
from fairlead.areas.deployments.migrations import (
    files,
    lone_statements,
    runner,
    scratch,
    version_table,
)
from fairlead.clients.postgres.connection import Patience, as_user
from fairlead.clients.postgres.server.running import Databases

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")

TABLE = files.Migration("1", "1_table.sql", "CREATE TABLE a (id int); INSERT INTO a VALUES (1)")
INDEX = files.Migration(
    "2",
    "2_index.sql",
    "ALTER TABLE a ADD b int; CREATE INDEX CONCURRENTLY a_b ON a (b); INSERT INTO a VALUES (2)",
)


def count(url: str, question: str) -> int:
    with scratch.admin(url) as connection:
        ((found,),) = connection.execute(question.encode()).fetchall()
    return int(found)


def states(url: str, *wanted: files.Migration) -> list[str]:
    return [state for _, state in runner.status(url, wanted)]


def test_what_is_pending_is_applied_once_and_in_order(postgres_url: str) -> None:
    assert states(postgres_url, TABLE, INDEX) == ["pending", "pending"]

    first = runner.run(postgres_url, [TABLE, INDEX])
    second = runner.run(postgres_url, [TABLE, INDEX])

    assert first.applied == ("1_table.sql", "2_index.sql")
    assert second.applied == ()
    assert states(postgres_url, TABLE, INDEX) == ["applied", "applied"]
    assert count(postgres_url, "SELECT count(*) FROM a") == 2


def test_a_migration_that_fails_leaves_nothing_of_itself(postgres_url: str) -> None:
    broken = files.Migration("2", "2_broken.sql", "CREATE TABLE b (); SELECT 1 / 0")

    with pytest.raises(errors.Rejected, match=r"2_broken\.sql: division by zero"):
        runner.run(postgres_url, [TABLE, broken])

    assert states(postgres_url, TABLE, broken) == ["applied", "pending"]
    assert count(postgres_url, "SELECT count(*) FROM pg_class WHERE relname = 'b'") == 0


def test_an_edited_migration_is_refused(postgres_url: str) -> None:
    runner.run(postgres_url, [TABLE])
    edited = files.Migration("1", "1_table.sql", "CREATE TABLE other ()")

    with pytest.raises(errors.Conflict, match=r"edited since: 1_table\.sql"):
        runner.run(postgres_url, [edited])


@dataclass(frozen=True, slots=True)
class Lone:
    """A statement without a transaction, and how the world stands when it was done once."""

    sql: str
    question: str
    wanted: int
    before: str = "CREATE TABLE a (id int); CREATE INDEX a_id ON a (id)"
    half: str = ""
    """What it leaves where the server dies in the middle of it."""


BROKEN = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass"
LONE = {
    "an index": Lone(
        "CREATE INDEX CONCURRENTLY a_b ON a (id)",
        "SELECT count(*) FROM pg_index WHERE indrelid = 'a'::regclass AND indisvalid",
        2,
        half="CREATE INDEX a_b ON a (id); " + BROKEN.format("a_b"),
    ),
    "an index without a name": Lone(
        "CREATE INDEX CONCURRENTLY ON a (id)",
        "SELECT count(*) FROM pg_index WHERE indrelid = 'a'::regclass AND indisvalid",
        2,
        half="CREATE INDEX ON a (id); " + BROKEN.format("a_id_idx"),
    ),
    "an index in another schema": Lone(
        'CREATE INDEX CONCURRENTLY IF NOT EXISTS a_id ON far."A" (id)',
        "SELECT count(*) FROM pg_class WHERE relname = 'a_id'",
        2,
        "CREATE TABLE a (id int); CREATE INDEX a_id ON a (id); CREATE SCHEMA far;"
        'CREATE TABLE far."A" (id int)',
        'CREATE INDEX a_id ON far."A" (id); ' + BROKEN.format("far.a_id"),
    ),
    "an index dropped": Lone(
        "DROP INDEX CONCURRENTLY a_id",
        "SELECT count(*) FROM pg_class WHERE relname = 'a_id'",
        0,
        half=BROKEN.format("a_id"),
    ),
    "a partition detached": Lone(
        "ALTER TABLE pt DETACH PARTITION pt1 CONCURRENTLY",
        "SELECT count(*) FROM pg_inherits",
        0,
        "CREATE TABLE pt (id int) PARTITION BY RANGE (id);"
        "CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (10)",
        "UPDATE pg_inherits SET inhdetachpending = true",
    ),
    "an index made anew": Lone(
        "REINDEX INDEX CONCURRENTLY a_id",
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'a\\_id%'",
        1,
        half="CREATE INDEX a_id_ccnew ON a (id); " + BROKEN.format("a_id_ccnew"),
    ),
    "rows vacuumed": Lone("VACUUM a", "SELECT count(*) FROM a", 0),
}


@pytest.mark.parametrize("cut", ["before it is sent", "by half", "before it is recorded"])
@pytest.mark.parametrize("lone", LONE.values(), ids=LONE)
def test_a_lone_statement_is_done_once_wherever_the_run_was_cut(
    postgres_url: str, lone: Lone, cut: str
) -> None:
    wanted = files.Migration("1", "1_lone.sql", f"SELECT 1; BEGIN; COMMIT; {lone.sql}; SELECT 2")
    parts = wanted.units()
    with scratch.admin(postgres_url) as connection:
        connection.execute(lone.before.encode())
        version_table.ensure(connection)
        before = lone_statements.look(connection, parts[1].statements[0])
        version_table.record(connection, wanted, parts, 1, before)
        did = {"by half": lone.half.split("; "), "before it is recorded": [lone.sql]}
        for each in filter(None, did.get(cut, [])):
            connection.execute(each.encode())

    assert states(postgres_url, wanted) == ["partial"]
    runner.run(postgres_url, [wanted])

    assert states(postgres_url, wanted) == ["applied"]
    assert count(postgres_url, lone.question) == lone.wanted


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("CREATE INDEX CONCURRENTLY a_id ON a (id)", "already exists"),
        ("DROP INDEX CONCURRENTLY none", "does not exist"),
        ("ALTER TABLE a DETACH PARTITION b CONCURRENTLY", "cannot be performed"),
    ],
)
def test_what_was_so_before_a_statement_does_not_count_as_done_by_it(
    postgres_url: str, sql: str, said: str
) -> None:
    with scratch.admin(postgres_url) as connection:
        connection.execute("CREATE TABLE a (id int); CREATE INDEX a_id ON a (id)")
    wanted = files.Migration("1", "1_lone.sql", sql)

    for _ in range(2):
        with pytest.raises(errors.Rejected, match=said):
            runner.run(postgres_url, [wanted])


def test_an_index_that_fails_leaves_no_half_and_its_file_can_be_mended(postgres_url: str) -> None:
    make = "CREATE UNIQUE INDEX CONCURRENTLY a_u ON a (id)"
    wanted = files.Migration("2", "2_index.sql", f"ALTER TABLE a ADD b int; COMMIT; {make}")
    runner.run(postgres_url, [TABLE])
    with scratch.admin(postgres_url) as connection:
        connection.execute("INSERT INTO a VALUES (1)")
    with pytest.raises(errors.Rejected, match="could not create unique index"):
        runner.run(postgres_url, [TABLE, wanted])
    assert count(postgres_url, "SELECT count(*) FROM pg_class WHERE relname = 'a_u'") == 0

    text = wanted.text.replace(make, f"TRUNCATE a; {make}")
    mended = files.Migration("2", "2_index.sql", text)
    runner.run(postgres_url, [TABLE, mended])

    assert states(postgres_url, TABLE, mended) == ["applied", "applied"]
    assert (
        count(
            postgres_url,
            "SELECT count(*) FROM pg_index WHERE indisvalid AND indrelid = 'a'::regclass",
        )
        == 1
    )


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        ("ALTER TABLE a ADD b int; COMMIT; SELECT 3; SELECT 4", True),
        ("ALTER TABLE a ADD b int; COMMIT", True),
        ("ALTER TABLE a ADD c int; COMMIT; SELECT 3", False),
        ("", False),
    ],
)
def test_of_a_migration_that_failed_only_what_is_not_done_may_be_edited(
    postgres_url: str, text: str, *, mended: bool
) -> None:
    broken = "ALTER TABLE a ADD b int; COMMIT; SELECT 1 / 0"
    with pytest.raises(errors.Rejected, match="division by zero"):
        runner.run(postgres_url, [TABLE, files.Migration("2", "2_b.sql", broken)])
    wanted = files.Migration("2", "2_b.sql", text)

    if mended:
        runner.run(postgres_url, [TABLE, wanted])
        assert states(postgres_url, wanted) == ["applied"]
    else:
        with pytest.raises(errors.Conflict, match="edited since"):
            runner.run(postgres_url, [TABLE, wanted])


def test_a_long_lock_is_waited_for_and_told(postgres_url: str) -> None:
    runner.run(postgres_url, [TABLE])
    told: list[str] = []
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE a")
        patience = Patience(
            0.05, attempts=3, sleep=lambda _: _end_at(told, holder), tell=told.append
        )

        runner.run(postgres_url, [TABLE, INDEX], patience)

    assert told == [
        "2_index.sql: a lock is held by others, attempt 2 follows",
        "2_index.sql: a lock is held by others, attempt 3 follows",
        "applied: 2_index.sql",
    ]


def _end_at(told: list[str], holder: psycopg.Connection[tuple[object, ...]]) -> None:
    if len(told) == 2:
        holder.rollback()


def test_a_lock_that_is_never_given_ends_the_run(postgres_url: str) -> None:
    runner.run(postgres_url, [TABLE])
    with psycopg.connect(postgres_url) as holder:
        holder.execute("LOCK TABLE a")
        patience = Patience(0.05, attempts=2, sleep=lambda _: None)

        with pytest.raises(errors.Unavailable, match="no lock after 2 attempts"):
            runner.run(postgres_url, [TABLE, INDEX], patience)

    assert states(postgres_url, INDEX) == ["pending"]


def test_two_runners_do_not_run_at_once(postgres_url: str) -> None:
    with scratch.admin(postgres_url) as other:
        other.execute("SELECT pg_advisory_lock(%s)", (runner.ADVISORY_KEY,))

        with pytest.raises(errors.Unavailable, match="another runner"):
            runner.run(postgres_url, [TABLE])


def test_a_database_that_goes_away_is_told(postgres_url: str) -> None:
    kill = files.Migration("1", "1_kill.sql", "SELECT pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(errors.Unavailable, match=r"1_kill\.sql: the database went away"):
        runner.run(postgres_url, [kill])

    assert states(postgres_url, kill) == ["pending"]


@pytest.mark.parametrize("dirty", [False, True])
def test_versions_of_golang_migrate_count(postgres_url: str, *, dirty: bool) -> None:
    with scratch.admin(postgres_url) as connection:
        connection.execute("CREATE TABLE schema_migrations (version bigint, dirty boolean)")
        connection.execute("INSERT INTO schema_migrations VALUES (1, %s)", (dirty,))
        connection.execute("CREATE TABLE a (id int)")

    if dirty:
        with pytest.raises(errors.Conflict, match="dirty at version: 1"):
            states(postgres_url, TABLE)
    else:
        assert states(postgres_url, TABLE, INDEX) == ["applied", "pending"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["10_b.sql", "9_a.sql", "notes.txt"], ["9_a.sql", "10_b.sql"]),
        (["000002_b.up.sql", "000002_b.down.sql", "000001_a.up.sql"], None),
        (["V1.2__b.sql", "V1__a.sql"], ["V1__a.sql", "V1.2__b.sql"]),
    ],
)
def test_a_folder_is_read_in_order(
    tmp_path: Path, names: list[str], found: list[str] | None
) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1")

    read = [each.name for each in files.read([tmp_path])]

    assert read == (found or ["000001_a.up.sql", "000002_b.up.sql"])


def _alembic(folder: Path) -> None:
    (folder / "env.py").write_text("")


def _unnumbered(folder: Path) -> None:
    (folder / "shop.sql").write_text("SELECT 1")


def _twice(folder: Path) -> None:
    (folder / "1_a.sql").write_text("SELECT 1")
    (folder / "01_b.sql").write_text("SELECT 1")


def _binary(folder: Path) -> None:
    (folder / "1_a.sql").write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    ("fill", "said"),
    [
        (_alembic, "migrations of Alembic"),
        (_unnumbered, "without a number"),
        (_twice, "two migrations of one version"),
        (_binary, "unreadable migration"),
        (lambda _: None, "no migrations in"),
    ],
)
def test_a_folder_that_makes_no_sense_is_refused(
    tmp_path: Path, fill: Callable[[Path], None], said: str
) -> None:
    fill(tmp_path)

    with pytest.raises(errors.Rejected, match=said):
        files.read([tmp_path])


def test_a_user_who_may_not_record_is_told_what_is_missing(
    postgres_server: Databases, postgres_url: str
) -> None:
    name = postgres_url.rpartition("/")[2]
    with psycopg.connect(postgres_server.admin_url, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN'.encode())
        try:
            with pytest.raises(errors.Rejected, match="version table: permission denied") as told:
                runner.run(as_user(postgres_url, name, ""), [TABLE])
        finally:
            admin.execute(f'DROP ROLE "{name}"'.encode())

    assert "public.fairlead_migrations" in told.value.hint
