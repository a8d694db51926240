"""`fairlead token …`: make, list and revoke API tokens, straight in the store."""

import contextlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click

from fairlead import errors, settings
from fairlead.access import tokens
from fairlead.console import options, printing
from fairlead.engine.store import protocol

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ROLES = [role.word for role in tokens.Role]


@click.group()
def token() -> None:
    """Create, list or revoke API tokens."""


@token.command()
@click.option("--name", required=True, help="Who the token is for.")
@click.option(
    "--role",
    type=click.Choice(_ROLES),
    default="viewer",
    show_default=True,
    help="What its bearer may do.",
)
@click.option(
    "--scope", default="", metavar="NAME", help="Only for this project or namespace; else for all."
)
@click.option("--expires", metavar="TIME", help="After 30m, 12h, 90d or 2w, or on 2030-01-31.")
def create(name: str, role: str, scope: str, expires: str | None) -> None:
    """Create a token; it is printed to standard output once."""
    now = datetime.now(UTC)
    until = None if expires is None else parse_expiry(expires, now)
    request = tokens.TokenRequest(name, tokens.role(role), until, scope)
    with _session(migrate=True) as session:
        minted = tokens.mint(session, request, now)
    end = f"expires {until:%Y-%m-%d %H:%M} UTC" if until else "never expires"
    click.echo(f"token {minted.id} for {name}: {role}, {end}; it is not shown again", err=True)
    click.echo(minted.text)


@token.command("list")
@options.output
def list_(as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """List all tokens, without their secrets."""
    now = datetime.now(UTC)
    with _session() as session:
        found = tokens.listed(session)
    if as_json:
        printing.document([_plain(each, now) for each in found])
        return
    for each in found:
        end = f"until {each.expires_at:%Y-%m-%d %H:%M} UTC" if each.expires_at else "no end"
        where = f"in {each.scope}" if each.scope else "everywhere"
        standing = _standing(each, now)
        click.echo(f"{each.id}  {each.role.word:8}  {standing:7}  {end}  {where}  {each.name}")


@token.command()
@click.argument("token_id", metavar="ID")
def revoke(token_id: str) -> None:
    """Revoke a token; running servers follow within seconds."""
    # Somebody may paste the whole token where its id is asked for; the id is in it.
    public = token_id.split("_")[1] if token_id.count("_") > 1 else token_id
    with _session() as session:
        tokens.revoke(session, public, datetime.now(UTC))
    click.echo(f"token revoked: {public}", err=True)


def parse_expiry(text: str, now: datetime) -> datetime:
    """A span from now, or a day or moment in UTC."""
    span = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if span:
        try:
            return now + timedelta(**{_UNITS[span[2]]: int(span[1])})
        except OverflowError as error:
            raise errors.Rejected(
                f"beyond the calendar: {text}", hint="leave the expiry out, or use a nearer one"
            ) from error
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise errors.Rejected(
            f"not a time: {text[:80]}", hint="use 30m, 12h, 90d, 2w or a date such as 2030-01-31"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@contextlib.contextmanager
def _session(*, migrate: bool = False) -> Iterator[protocol.Session]:
    chosen = options.settings().store
    kept = options.installation().store(chosen)
    if migrate:
        # The first token may come before the first start: an open bind asks for it.
        kept.migrate()
    else:
        _check_there(chosen, kept)
    with contextlib.closing(kept.open()) as session:
        yield session


def _check_there(chosen: settings.StoreSettings, kept: protocol.Store) -> None:
    """Reading must not create anything."""
    file = chosen.database_file
    if not chosen.database_url and not file.exists():
        raise errors.NotFound(
            f"no database here: {file}", hint="make the first token with fairlead token create"
        )
    if pending := kept.pending_migrations():
        raise errors.Conflict(
            f"the database is not migrated: {', '.join(pending)}",
            hint="run fairlead store migrate",
        )


def _standing(each: tokens.TokenView, now: datetime) -> str:
    if each.revoked_at is not None:
        return "revoked"
    return "good" if each.usable(now) else "expired"


def _plain(each: tokens.TokenView, now: datetime) -> dict[str, str | None]:
    return {
        "id": each.id,
        "name": each.name,
        "role": each.role.word,
        "scope": each.scope,
        "standing": _standing(each, now),
        "created_at": each.created_at.isoformat(),
        "expires_at": each.expires_at.isoformat() if each.expires_at else None,
        "revoked_at": each.revoked_at.isoformat() if each.revoked_at else None,
    }
