"""The store's own commands."""

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.cli import app
from fairlead.engine.store import sqlite
from tests.unit.cli.conftest import Run


def test_migrate_names_what_it_applied_and_is_done_once(run: Run) -> None:
    first = run("store", "migrate")
    second = run("store", "migrate")

    assert first.out.splitlines()[0] == "0001_first"
    assert (second.code, second.out, second.err) == (0, "", "migrations applied: 0\n")


def test_status_counts_what_waits(run: Run, filled: Path) -> None:
    shown = json.loads(run("store", "status", "-o", "json").out)

    assert shown.pop("store") == f"SQLite: {filled / 'fairlead.db'}"
    assert shown == {
        "pending_migrations": [],
        "active_streams": 2,
        "effects": 1,
        "dead_effects": 1,
        "timers": 0,
        "workers": [],
    }
    assert "dead effects        1\n" in run("store", "status").out


def test_reindex_rebuilds_what_streams_are_found_by(run: Run, filled: Path) -> None:
    with contextlib.closing(sqlite3.connect(filled / "fairlead.db")) as behind, behind:
        behind.execute("DELETE FROM attributes")
    lost = json.loads(run("get", "depot", "--where", "trips=3", "-o", "json").out)

    ran = run("store", "reindex")

    found = json.loads(run("get", "depot", "--where", "trips=3", "-o", "json").out)
    assert (ran.code, ran.out) == (0, "depot\n")
    assert (lost, [each["name"] for each in found]) == ([], ["depot/north"])
    assert run("store", "reindex", "nothing").code == errors.NotFound.exit_code


def test_status_names_those_at_work(run: Run, filled: Path) -> None:
    opened = sqlite.SqliteStore(filled / "fairlead.db").open()
    opened.rows("register_worker", name="north", now=0, lease=2**50, serves="[]")
    opened.close()

    assert json.loads(run("store", "status", "-o", "json").out)["workers"] == ["north"]


def test_status_tells_what_is_still_to_be_applied(run: Run, state_dir: Path) -> None:
    state_dir.mkdir()
    sqlite3.connect(state_dir / "fairlead.db").close()

    shown = json.loads(run("store", "status", "-o", "json").out)

    assert shown["pending_migrations"][0] == "0001_first"
    assert run("get").code == errors.Conflict.exit_code


def test_archive_moves_ended_streams_into_a_file(run: Run, filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"

    ran = run("store", "archive", "--older-than", "0s", str(file))

    assert (ran.code, ran.out) == (0, f"{file}\n")
    assert ran.err == "archived: 2 streams, 10 events\n"
    names = [json.loads(line).get("stream") for line in file.read_text().splitlines()]
    assert [name for name in names if name] == ["trip/north-1", "trip/north-3"]
    assert run("get", "trip/north-1").code == errors.NotFound.exit_code


def test_archive_of_nothing_makes_no_file(run: Run, filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"

    ran = run("store", "archive", "--older-than", "30d", str(file))

    assert (ran.out, ran.err) == ("", "archived: 0 streams, 0 events\n")
    assert not file.exists()


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (("3x", "old.jsonl"), app.USAGE),
        (("-3d", "old.jsonl"), app.USAGE),
        (("999999w", "old.jsonl"), app.USAGE),
        (("0s", "none/old.jsonl"), errors.Rejected.exit_code),
        (("0s", "there.jsonl"), errors.Conflict.exit_code),
    ],
)
def test_archive_refuses_what_it_cannot_do(
    run: Run, filled: Path, tmp_path: Path, asked: tuple[str, str], code: int
) -> None:
    age, file = asked
    (tmp_path / "there.jsonl").touch()

    ran = run("store", "archive", f"--older-than={age}", str(tmp_path / file))

    assert ran.code == code
    assert "\nhint: " in ran.err
    assert run("get", "trip/north-1").code == 0


def test_archive_of_living_streams_is_refused_where_a_projection_needs_every_event(
    run: Run, filled: Path, tmp_path: Path
) -> None:
    ran = run("store", "archive", "--living", "--older-than", "0s", str(tmp_path / "old.jsonl"))

    assert ran.code == errors.Rejected.exit_code
    assert ran.err.startswith("error: a projection needs every event: ")


def test_events_that_are_in_the_archive_are_told_of(run: Run, filled: Path) -> None:
    opened = sqlite.SqliteStore(filled / "fairlead.db").open()
    opened.rows("trim_stream", stream=1, seen=1, kept_from=3, names=[])
    opened.close()

    told = run("events", "depot/north")

    assert told.err == "events before 3 are in the archive\n"
    assert told.out.splitlines()[0].split("  ")[2] == "3"
    assert "history  events before 3 are in the archive\n" in run("get", "depot/north").out
    assert json.loads(run("get", "depot/north", "-o", "json").out)["kept_from"] == 3


def test_status_of_postgres_shows_no_password(
    run: Run, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DATABASE_URL", postgres_url)
    assert run("store", "migrate").code == 0

    shown = json.loads(run("store", "status", "-o", "json").out)

    assert shown["store"].startswith("PostgreSQL: postgresql://")
    assert "@" not in shown["store"]
    assert shown["active_streams"] == 0


def test_commands_on_the_store_do_not_go_round_a_server(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_SERVER", "http://127.0.0.1:1")

    ran = run("store", "status")

    assert ran.code == errors.Rejected.exit_code
    assert "hint: unset FAIRLEAD_SERVER" in ran.err


def test_a_projection_is_built_again(run: Run, filled: Path) -> None:
    ran = run("projections", "rebuild", "trips")

    assert (ran.code, ran.err) == (0, "rebuilt: trips\n")
    with sqlite3.connect(filled / "fairlead.db") as connection:
        rows = dict(connection.execute("SELECT key, data FROM projected ORDER BY key"))
    connection.close()
    assert {key: json.loads(data)["events"] for key, data in rows.items()} == {
        "trip/north-1": 5,
        "trip/north-2": 2,
        "trip/north-3": 5,
    }


def test_an_unknown_projection_is_refused(run: Run, filled: Path) -> None:
    ran = run("projections", "rebuild", "gadgets")

    assert ran.code == errors.NotFound.exit_code
    assert ran.err == "error: no such projection: gadgets\nhint: known projections: trips\n"


def test_a_new_epoch_is_told_and_kept(run: Run, filled: Path) -> None:
    first, second = run("store", "new-epoch"), run("store", "new-epoch")

    kept = sqlite3.connect(filled / "fairlead.db").execute(
        "SELECT value FROM facts WHERE name = 'epoch'"
    )
    assert (first.code, second.code) == (0, 0)
    assert first.out != second.out
    assert str(kept.fetchone()[0]).endswith(second.out.strip())
