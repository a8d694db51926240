"""A commit that returned must survive a power cut: nothing may turn that off quietly."""

import contextlib
from pathlib import Path

import pytest

from fairlead.engine.store import postgres, sqlite

FULL = 2


def test_sqlite_waits_for_the_disk_at_every_commit(tmp_path: Path) -> None:
    store = sqlite.SqliteStore(tmp_path / "power.db")
    store.migrate()

    with contextlib.closing(store.open()) as session:
        pragmas = {
            name: session._connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("synchronous", "journal_mode")
        }

    assert pragmas == {"synchronous": FULL, "journal_mode": "wal"}


@pytest.mark.parametrize("setting", ["synchronous_commit", "fsync", "full_page_writes"])
def test_postgres_sessions_leave_durability_as_the_server_has_it(
    postgres_url: str, setting: str
) -> None:
    with contextlib.closing(postgres.PostgresStore(postgres_url).open()) as session:
        row = session._connection.execute(
            "SELECT setting, source <> 'session' AND source <> 'client' FROM pg_settings"
            " WHERE name = %s",
            [setting],
        ).fetchone()

    assert row == ("on", True)
