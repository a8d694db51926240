"""Care of the store: bring its schema up to date, look at it, move old streams out."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fairlead import bootstrap, errors
from fairlead import settings as settings_
from fairlead.cli import options, printing, sources
from fairlead.engine import clock, retention
from fairlead.engine.store import protocol

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Age(click.ParamType[timedelta]):
    """A length of time such as 30d."""

    name = "age"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        found = re.fullmatch(r"(\d{1,6})([smhdw])", str(value))
        if found is None:
            self.fail(f"not a length of time: {value} (use 30d, 12h, 4w)", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


@click.group()
def store() -> None:
    """Migrate, inspect or archive the store."""


@store.command()
def migrate() -> None:
    """Bring the store's tables up to date; made first where they are missing."""
    applied = bootstrap.store(options.local_settings().store, bootstrap.Cast()).migrate()
    for name in applied:
        click.echo(name)
    printing.talk(f"migrations applied: {len(applied)}")


@store.command()
@options.output
def status(as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show which store this is, its schema, and how much waits in it."""
    chosen = options.local_settings().store
    sources.check_there(chosen)
    kept = bootstrap.store(chosen, bootstrap.Cast())
    pending = kept.pending_migrations()
    facts = {"store": _where(chosen), "pending_migrations": pending}
    if not pending:
        facts |= _counts(kept)
    if as_json:
        printing.document(facts)
    else:
        printing.pairs([(name.replace("_", " "), _text(value)) for name, value in facts.items()])


@store.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--older-than", type=Age(), required=True, metavar="AGE", help="Such as 30d, 12h or 4w."
)
def archive(file: Path, older_than: timedelta) -> None:
    """Move streams that ended longer ago than AGE into FILE, as JSON lines."""
    before = datetime.now(UTC) - older_than
    with sources.session(options.local_settings().store) as session:
        try:
            done = retention.archive(session, before, file)
        except OSError as error:
            raise errors.Rejected(
                f"cannot write the archive: {file}: {error.strerror}",
                hint="name a file in a folder that exists and that you may write to",
            ) from error
    if done.file is not None:
        click.echo(str(done.file))
    printing.talk(f"archived: {done.streams} streams, {done.events} events")


def _where(chosen: settings_.StoreSettings) -> str:
    """Which store, without what is secret about it."""
    if chosen.database_url:
        return "PostgreSQL: " + re.sub(r"//[^@/]*@", "//", chosen.database_url).partition("?")[0]
    return f"SQLite: {bootstrap.database_file(chosen)}"


def _counts(kept: protocol.Store) -> dict[str, Any]:
    session = kept.open()
    try:
        ((active, effects, dead, timers),) = session.rows("count_rows")
        workers = session.rows("live_workers", now=clock.to_millis(kept.now()))
    finally:
        session.close()
    return {
        "active_streams": active,
        "effects": effects,
        "dead_effects": dead,
        "timers": timers,
        "workers": [name for _, name, _ in workers],
    }


def _text(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
