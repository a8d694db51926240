"""Tokens on both stores: made once, kept as a digest, refused in time."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.access import tokens
from fairlead.engine.store import postgres, protocol, sqlite

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REQUEST = tokens.TokenRequest("ci", tokens.Role.OPERATOR, NOW + timedelta(days=1))


@pytest.fixture(params=["sqlite", "postgres"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[protocol.Session]:
    store: protocol.Store
    if request.param == "sqlite":
        store = sqlite.SqliteStore(tmp_path / "fairlead.db")
    else:
        store = postgres.PostgresStore(request.getfixturevalue("postgres_url"))
    store.migrate()
    opened = store.open()
    yield opened
    opened.close()


def test_a_minted_token_is_known_by_its_text(session: protocol.Session) -> None:
    minted = tokens.mint(session, REQUEST, NOW)

    found = tokens.verify(session, minted.text, NOW)

    assert found == tokens.TokenView(
        minted.id, "ci", tokens.Role.OPERATOR, NOW, NOW + timedelta(days=1), None
    )
    assert tokens.listed(session) == [found]


def test_the_store_keeps_no_secret(session: protocol.Session) -> None:
    minted = tokens.mint(session, REQUEST, NOW)
    secret = minted.text.rpartition("_")[2]

    assert secret not in str(session.rows("list_tokens"))
    assert secret not in repr(minted)


def test_no_two_tokens_are_alike(session: protocol.Session) -> None:
    minted = {tokens.mint(session, REQUEST, NOW).text for _ in range(20)}

    assert len({text.rpartition("_")[2] for text in minted}) == 20


@pytest.mark.parametrize("later", [timedelta(days=1), timedelta(days=400)])
def test_an_expired_token_is_refused(session: protocol.Session, later: timedelta) -> None:
    minted = tokens.mint(session, REQUEST, NOW)

    with pytest.raises(errors.Unauthorised, match="expired"):
        tokens.verify(session, minted.text, NOW + later)


def test_a_revoked_token_is_refused_and_may_be_revoked_again(session: protocol.Session) -> None:
    minted = tokens.mint(session, REQUEST, NOW)

    tokens.revoke(session, minted.id, NOW)
    tokens.revoke(session, minted.id, NOW + timedelta(hours=1))

    with pytest.raises(errors.Unauthorised, match="revoked"):
        tokens.verify(session, minted.text, NOW)
    assert tokens.listed(session)[0].revoked_at == NOW


def test_an_unknown_token_cannot_be_revoked(session: protocol.Session) -> None:
    with pytest.raises(errors.NotFound, match="no such token: none"):
        tokens.revoke(session, "none", NOW)


@pytest.mark.parametrize("change", ["id", "secret", "prefix", "empty", "upper", "more"])
def test_a_changed_token_is_refused(session: protocol.Session, change: str) -> None:
    text = tokens.mint(session, REQUEST, NOW).text
    changed = {
        "id": text.replace(text[4:16], "0" * 12),
        "secret": text[:-1] + ("0" if text[-1] != "0" else "1"),
        "prefix": "x" + text[1:],
        "empty": "",
        "upper": text.upper(),
        "more": text + "\n",
    }[change]

    with pytest.raises(errors.Unauthorised) as refused:
        tokens.verify(session, changed, NOW)

    assert text.rpartition("_")[2] not in refused.value.message


@pytest.mark.parametrize("name", ["", "x" * 81, "a\nb", "a\x00"])
def test_a_name_must_fit_on_a_line(session: protocol.Session, name: str) -> None:
    with pytest.raises(errors.Rejected, match="not a token name"):
        tokens.mint(session, tokens.TokenRequest(name, tokens.Role.VIEWER), NOW)


def test_a_token_cannot_be_born_expired(session: protocol.Session) -> None:
    with pytest.raises(errors.Rejected, match="expired already"):
        tokens.mint(session, tokens.TokenRequest("late", tokens.Role.VIEWER, NOW), NOW)


def test_roles_are_ordered_and_known_by_word() -> None:
    assert [role.word for role in sorted(tokens.Role)] == [
        *("viewer", "operator", "deployer", "admin")
    ]
    assert [tokens.role(each.word) for each in tokens.Role] == list(tokens.Role)
    with pytest.raises(errors.Rejected, match="no such role: king"):
        tokens.role("king")


def test_a_token_keeps_its_scope(session: protocol.Session) -> None:
    request = tokens.TokenRequest("pay", tokens.Role.OPERATOR, scope="payments")

    minted = tokens.mint(session, request, NOW)

    assert tokens.verify(session, minted.text, NOW).scope == "payments"
    assert [each.scope for each in tokens.listed(session)] == ["payments"]


def test_a_scope_that_is_none_is_refused(session: protocol.Session) -> None:
    request = tokens.TokenRequest("pay", tokens.Role.OPERATOR, scope="pay/*")

    with pytest.raises(errors.Rejected, match="not a project or namespace"):
        tokens.mint(session, request, NOW)
