import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.access import sessions, tokens
from fairlead.engine.store import protocol, sqlite

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
LIFE = timedelta(hours=12)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[protocol.Session]:
    store = sqlite.SqliteStore(tmp_path / "fairlead.db")
    store.migrate()
    opened = store.open()
    yield opened
    opened.close()


def token(session: protocol.Session, expires_at: datetime | None = None) -> tokens.TokenView:
    request = tokens.TokenRequest("ada", tokens.Role.OPERATOR, expires_at, "payments")
    return tokens.verify(session, tokens.mint(session, request, NOW).text, NOW)


def test_a_session_is_good_for_what_its_token_is_good_for(session: protocol.Session) -> None:
    behind = token(session)

    opened = sessions.start(session, behind, LIFE, NOW)

    assert sessions.verify(session, opened.text, NOW) == behind


def test_a_session_ends_after_its_life(session: protocol.Session) -> None:
    opened = sessions.start(session, token(session), LIFE, NOW)

    assert opened.expires_at == NOW + LIFE
    with pytest.raises(errors.Unauthorised, match="the session is over"):
        sessions.verify(session, opened.text, NOW + LIFE)


def test_a_session_never_outlives_its_token(session: protocol.Session) -> None:
    behind = token(session, NOW + timedelta(hours=1))

    assert sessions.start(session, behind, LIFE, NOW).expires_at == behind.expires_at


def test_a_session_of_a_revoked_token_is_refused(session: protocol.Session) -> None:
    behind = token(session)
    opened = sessions.start(session, behind, LIFE, NOW)

    tokens.revoke(session, behind.id, NOW)

    with pytest.raises(errors.Unauthorised, match="revoked"):
        sessions.verify(session, opened.text, NOW)


def test_a_session_of_a_token_that_is_gone_is_refused(session: protocol.Session) -> None:
    behind = dataclasses.replace(token(session), id="0" * 12)
    opened = sessions.start(session, behind, LIFE, NOW)

    with pytest.raises(errors.Unauthorised, match="not known here"):
        sessions.verify(session, opened.text, NOW)


def test_who_signs_out_ends_one_session_and_no_other(session: protocol.Session) -> None:
    behind = token(session)
    one, other = (sessions.start(session, behind, LIFE, NOW) for _ in range(2))

    sessions.end(session, one.text)

    with pytest.raises(errors.Unauthorised, match="the session is over"):
        sessions.verify(session, one.text, NOW)
    assert sessions.verify(session, other.text, NOW) == behind


@pytest.mark.parametrize("text", ["", "fls_", "flt_" + "0" * 12 + "_" + "0" * 64, "ü" * 80])
def test_what_is_no_session_is_refused_and_ends_nothing(
    session: protocol.Session, text: str
) -> None:
    sessions.end(session, text)

    with pytest.raises(errors.Unauthorised, match="the session is over"):
        sessions.verify(session, text, NOW)


def test_a_secret_that_is_wrong_by_a_digit_opens_and_ends_nothing(
    session: protocol.Session,
) -> None:
    opened = sessions.start(session, token(session), LIFE, NOW)
    wrong = opened.text[:-1] + ("0" if opened.text[-1] != "0" else "1")

    sessions.end(session, wrong)

    with pytest.raises(errors.Unauthorised, match="the session is over"):
        sessions.verify(session, wrong, NOW)
    assert sessions.verify(session, opened.text, NOW).name == "ada"


def test_sessions_that_are_over_leave_the_store(session: protocol.Session) -> None:
    behind = token(session)
    old = sessions.start(session, behind, timedelta(hours=1), NOW)

    sessions.start(session, behind, LIFE, NOW + timedelta(hours=2))

    assert session.rows("get_session", id=old.id) == []


def test_a_session_shown_by_accident_does_not_show_its_secret(session: protocol.Session) -> None:
    opened = sessions.start(session, token(session), LIFE, NOW)

    assert opened.text.rpartition("_")[2] not in repr(opened)
