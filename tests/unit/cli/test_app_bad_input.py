"""Bad input as a shell sees it: a real process, its exit code, a hint, and no data."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.unit.cli.conftest import Run


def fairlead(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {name: value for name, value in os.environ.items() if "FAIRLEAD_" not in name}
    return subprocess.run(
        [sys.executable, "-m", "fairlead", *arguments],
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("FAIRLEAD_LISTN", "x", "unknown setting: FAIRLEAD_LISTN\nhint: did you mean "),
        ("FAIRLEAD_IN_FLIGHT", "many", "malformed setting FAIRLEAD_IN_FLIGHT: many\nhint: "),
        ("FAIRLEAD_LOG_LEVEL", "loud", "malformed setting FAIRLEAD_LOG_LEVEL: loud\nhint: "),
        ("FAIRLEAD_DATABASE_URL", "mysql://x", "malformed setting FAIRLEAD_DATABASE_URL"),
        ("FAIRLEAD_SERVER", "nowhere", "malformed setting FAIRLEAD_SERVER"),
    ],
)
def test_a_wrong_setting(variable: str, value: str, said: str) -> None:
    done = fairlead("get", **{variable: value})

    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: {said}")
    assert "\nhint: " in done.stderr


def test_a_database_that_does_not_answer_and_whose_password_is_not_shown() -> None:
    done = fairlead("--database-url", "postgresql://me:hunter2@127.0.0.1:1/x", "get")

    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("error: cannot reach the database: 127.0.0.1")
    assert "\nhint: " in done.stderr
    assert "hunter2" not in done.stderr


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    done = fairlead("--state-dir", str(tmp_path / "file"), "store", "migrate")

    assert done.returncode == 7
    assert "\nhint: " in done.stderr


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "fairlead.db").write_text("dear diary, " * 500)

    done = fairlead("--state-dir", str(tmp_path), "get")

    assert done.returncode == 7
    assert "error: cannot open the database" in done.stderr
    assert (tmp_path / "fairlead.db").read_text().startswith("dear diary")


@pytest.mark.parametrize("command", [["get"], ["store", "migrate"], ["store", "status"]])
def test_a_database_of_a_newer_program(run: Run, filled: Path, command: list[str]) -> None:
    with sqlite3.connect(filled / "fairlead.db") as connection:
        connection.execute("INSERT INTO migrations (name) VALUES ('9999_future')")
    connection.close()

    ran = run(*command)

    assert (ran.code, ran.out) == (6, "")
    assert ran.err.startswith("error: the database is newer than this program: 9999_future\nhint: ")


def test_a_newer_postgres(run: Run, postgres_url: str) -> None:
    assert run("--database-url", postgres_url, "store", "migrate").code == 0
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO migrations (name) VALUES ('9999_future')")

    ran = run("--database-url", postgres_url, "get")

    assert ran.code == 6
    assert "newer than this program" in ran.err


def test_a_corrupt_state_row_is_shown_as_such_and_takes_no_command(run: Run, filled: Path) -> None:
    with sqlite3.connect(filled / "fairlead.db") as connection:
        connection.execute("UPDATE streams SET state = '{\"de' WHERE name = 'depot/north'")
    connection.close()

    order = '{"depot": "north", "trips": 1}'
    ran = run("submit", "depot/north", "Order", order)

    assert ran.code == 8
    assert ran.err.startswith("error: cannot read depot state Busy version 1: ")
    assert "\nhint: " in ran.err
    assert "unreadable" in run("get", "depot/north").out
    assert run("get", "trip/north-1").code == 0
