"""`fairlead token …`: text on standard output once, everything else beside it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from fairlead import errors
from fairlead.access import tokens
from fairlead.cli import tokens as command
from fairlead.engine.store import sqlite

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def run(folder: Path, *arguments: str) -> Result:
    environment = {"FAIRLEAD_STATE_DIR": str(folder)}
    return CliRunner(env=environment).invoke(command.token, arguments, catch_exceptions=True)


def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    made = run(tmp_path, "create", "--name", "ci", "--role", "operator", "--expires", "90d")
    text = made.stdout.strip()
    public = text.split("_")[1]
    listed = run(tmp_path, "list")
    revoked = run(tmp_path, "revoke", public)
    after = json.loads(run(tmp_path, "list", "-o", "json").stdout)

    assert made.exit_code == listed.exit_code == revoked.exit_code == 0
    assert "not shown again" in made.stderr
    assert listed.stdout.split()[:3] == [public, "operator", "good"]
    assert text.rpartition("_")[2] not in listed.output + revoked.output
    assert after[0]["standing"] == "revoked"


def test_the_text_opens_the_door(tmp_path: Path) -> None:
    text = run(tmp_path, "create", "--name", "ci").stdout.strip()

    session = sqlite.SqliteStore(tmp_path / "fairlead.db").open()
    found = tokens.verify(session, text, datetime.now(UTC))
    session.close()

    assert (found.name, found.role) == ("ci", tokens.Role.VIEWER)


def test_a_whole_token_may_be_given_to_revoke(tmp_path: Path) -> None:
    text = run(tmp_path, "create", "--name", "ci").stdout.strip()

    revoked = run(tmp_path, "revoke", text)

    assert revoked.exit_code == 0
    assert text not in revoked.output


def test_looking_creates_nothing(tmp_path: Path) -> None:
    listed = run(tmp_path / "none", "list")

    assert isinstance(listed.exception, errors.NotFound)
    assert not (tmp_path / "none").exists()


def test_an_unknown_token_is_told(tmp_path: Path) -> None:
    run(tmp_path, "create", "--name", "ci")

    assert isinstance(run(tmp_path, "revoke", "none").exception, errors.NotFound)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30m", NOW + timedelta(minutes=30)),
        ("12h", NOW + timedelta(hours=12)),
        ("90d", NOW + timedelta(days=90)),
        ("2w", NOW + timedelta(weeks=2)),
        ("2030-01-31", datetime(2030, 1, 31, tzinfo=UTC)),
        ("2030-01-31T12:00+02:00", datetime(2030, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_an_expiry_is_read(text: str, moment: datetime) -> None:
    assert command.parse_expiry(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "soon", "0d", "-1d", "1y", "2030-13-01", "9999999d"])
def test_a_wrong_expiry_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a time"):
        command.parse_expiry(text, NOW)


def test_an_expiry_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="beyond the calendar: 999999w"):
        command.parse_expiry("999999w", NOW)


def test_the_group_is_a_click_command() -> None:
    assert isinstance(command.token, click.Group)
    assert set(command.token.commands) == {"create", "list", "revoke"}
