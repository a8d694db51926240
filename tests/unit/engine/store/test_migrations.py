"""The schema is the sum of its migrations, applied once, whole or not at all."""

import threading
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.engine.store import migrations
from tests.engines import Home

SCHEMAS = Path(__file__).parents[1] / "schema"
_COLUMNS = """
    SELECT table_name || '.' || column_name || ' ' || data_type
        || CASE is_nullable WHEN 'NO' THEN ' NOT NULL' ELSE '' END
        || CASE is_identity WHEN 'YES' THEN ' IDENTITY' ELSE '' END
        || coalesce(' DEFAULT ' || column_default, '')
    FROM information_schema.columns WHERE table_schema = 'public'
    ORDER BY table_name, ordinal_position"""
_INDEXES = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname"
_OPTIONS = """
    SELECT relname || ' WITH ' || array_to_string(reloptions, ', ') FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND reloptions IS NOT NULL ORDER BY relname"""
_TRIGGERS = """
    SELECT pg_get_triggerdef(t.oid) || ' AS ' || p.prosrc
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE NOT t.tgisinternal ORDER BY t.tgname"""
_SQLITE = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name"


def schema(home: Home) -> str:
    """A database's shape as text."""
    asked = [_SQLITE] if home.kind == "sqlite" else [_COLUMNS, _INDEXES, _OPTIONS, _TRIGGERS]
    return "".join(f"{text}\n" for query in asked for (text,) in home.sql(query))


def test_the_schema_equals_the_snapshot_that_was_reviewed(home: Home) -> None:
    """After a new migration: look at the difference, then copy it into the snapshot."""
    kept = (SCHEMAS / f"{home.kind}.txt").read_text()

    assert schema(home) == kept


def test_a_fresh_database_has_everything_pending_and_a_migrated_one_nothing(
    bare_home: Home,
) -> None:
    store = bare_home.store()
    every = [migration.name for migration in migrations.load(bare_home.kind)]

    assert store.pending_migrations() == every
    assert store.migrate() == every
    assert store.pending_migrations() == []
    assert store.migrate() == []


def test_both_stores_went_through_the_same_migrations() -> None:
    names = [
        [migration.name for migration in migrations.load(kind)] for kind in ("sqlite", "postgres")
    ]

    assert names[0] == names[1] == sorted(names[0])


@pytest.mark.parametrize("goes_with", ["NULL", "'9998'"])
def test_a_database_that_is_newer_than_we_are_is_refused(home: Home, goes_with: str) -> None:
    home.sql(f"INSERT INTO migrations VALUES ('9999_later', {goes_with})")  # noqa: S608 - our own words
    before = schema(home)

    for action in (home.store().migrate, home.store().pending_migrations):
        with pytest.raises(errors.Conflict, match="newer than this program: 9999_later"):
            action()

    assert schema(home) == before


def test_a_program_goes_on_after_migrations_that_say_it_may(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expand first, contract in a later release: programs of before run on the expanded schema."""
    ours = migrations.load(home.kind)
    goes_with = f"-- compatible with: {ours[-1].name[:4]}\n"
    newer = [
        migrations.Migration("9998_wider", f"{goes_with}ALTER TABLE streams ADD COLUMN hue text;"),
        migrations.Migration("9999_wider", f"{goes_with}CREATE TABLE hues (hue text);"),
    ]
    monkeypatch.setattr(migrations, "load", lambda _: ours + newer)
    assert home.store().migrate() == ["9998_wider", "9999_wider"]

    monkeypatch.setattr(migrations, "load", lambda _: ours)

    assert (home.store().pending_migrations(), home.store().migrate()) == ([], [])
    with pytest.raises(errors.Conflict, match="newer than this program: 9998_wider"):
        migrations.outstanding(ours[:-1], [("9998_wider", ours[-1].name[:4])])


def test_a_database_from_before_that_mark_is_brought_up_to_date(
    bare_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = migrations.load(bare_home.kind)
    monkeypatch.setattr(migrations, "load", lambda _: every[:3])
    bare_home.store().migrate()
    assert bare_home.store().pending_migrations() == []

    monkeypatch.undo()

    assert bare_home.store().migrate() == [each.name for each in every[3:]]


def test_two_migrators_that_start_together_apply_each_migration_once(bare_home: Home) -> None:
    start, applied = threading.Barrier(4), list[list[str]]()

    def migrate() -> None:
        store = bare_home.store()
        start.wait()
        applied.append(store.migrate())

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    every = [migration.name for migration in migrations.load(bare_home.kind)]
    assert sorted(applied) == [[], [], [], every]


def test_a_migration_that_fails_half_way_leaves_nothing(
    bare_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [
        *migrations.load(bare_home.kind),
        migrations.Migration("9999_broken", "CREATE TABLE half (a integer); SELECT nonsense;"),
    ]
    monkeypatch.setattr(migrations, "load", lambda _: broken)

    with pytest.raises(errors.FairleadError, match="nonsense"):
        bare_home.store().migrate()

    assert "half" not in schema(bare_home)
    assert "streams" not in schema(bare_home)
    monkeypatch.undo()
    assert bare_home.store().migrate() != []


def test_statements_are_parted_and_comments_dropped() -> None:
    migration = migrations.Migration("1", "-- why; because\nCREATE TABLE a (b text);\n\nDROP a;\n")

    assert migration.statements() == ["CREATE TABLE a (b text)", "DROP a"]


@pytest.mark.parametrize(
    "body", ["BEGIN UPDATE a SET b = 1; END", "AS $$ BEGIN RETURN NULL; END $$"]
)
def test_a_body_with_semicolons_of_its_own_is_one_statement(body: str) -> None:
    migration = migrations.Migration("1", f"CREATE THING {body};\nDROP a;")

    assert migration.statements() == [f"CREATE THING {body}", "DROP a"]
