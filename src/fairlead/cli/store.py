"""Care of the store: migrate its schema, inspect it, move old streams out."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from fairlead import errors
from fairlead import settings as settings_
from fairlead.console import clients, local_engine, options, printing
from fairlead.engine import batch, clock, indexing, retention
from fairlead.engine import machine as machines
from fairlead.engine.store import epochs, protocol

_MOST = timedelta(days=36_500)
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
        age = timedelta(**{_UNITS[found[2]]: int(found[1])})
        if age > _MOST:
            self.fail(f"longer than {_MOST.days}d: {value}", param, ctx)
        return age


@click.group()
def store() -> None:
    """Migrate, inspect or archive the store."""


@store.command()
def migrate() -> None:
    """Create or migrate the store's tables."""
    applied = options.installation().store(options.local_settings().store).migrate()
    for name in applied:
        click.echo(name)
    printing.talk(f"migrations applied: {len(applied)}")


@store.command()
@options.output
def status(as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show the store, its schema, and how much work waits in it."""
    chosen = options.local_settings().store
    clients.check_there(chosen)
    kept = options.installation().store(chosen)
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
@click.option(
    "--living",
    is_flag=True,
    help="Move old events of streams that live on instead; their state stays.",
)
@click.option(
    "--command-ids",
    type=Age(),
    default="30d",
    show_default=True,
    metavar="AGE",
    help="With --living, forget command ids older than this.",
)
def archive(file: Path, older_than: timedelta, living: bool, command_ids: timedelta) -> None:  # noqa: FBT001 - click hands options over by name
    """Move streams that ended longer ago than AGE into FILE, as JSON lines."""
    now = datetime.now(UTC)
    age = retention.Age(now - older_than, now - command_ids)
    try:
        done = _trim(age, file) if living else _archive(age, file)
    except OSError as error:
        raise errors.Rejected(
            f"cannot write the archive: {file}: {error.strerror}",
            hint="name a file in a folder that exists and that you may write to",
        ) from error
    if done.file is not None:
        click.echo(str(done.file))
    printing.talk(f"archived: {done.streams} streams, {done.events} events")


@store.command("new-epoch")
def new_epoch() -> None:
    """Say that the store was restored: from now on, idempotency keys differ from those before.

    Before the workers start again. Not needed where the store notices by itself.
    """
    with clients.session(options.installation(), options.local_settings().store) as session:
        click.echo(epochs.renew(session))


@store.command()
@click.argument("machine", required=False, metavar="[MACHINE]")
def reindex(machine: str | None) -> None:
    """Rebuild what streams are found by, for all machines or for MACHINE.

    A worker does it by itself when it starts with other attributes than the store has. Run it
    after an upgrade during which an older process went on working.
    """
    known = machines.Machines(options.installation().machines)
    registry = batch.MachineRegistry(known)
    chosen = [known.named(machine)] if machine else known
    with clients.session(options.installation(), options.local_settings().store) as session:
        for each in chosen:
            if each.attributes is not None:
                indexing.rebuild(session, registry.of(each.name))
                click.echo(each.name)


def _archive(age: retention.Age, file: Path) -> retention.Archived:
    with clients.session(options.installation(), options.local_settings().store) as session:
        return retention.archive(session, age.events_before, file)


def _trim(age: retention.Age, file: Path) -> retention.Archived:
    return local_engine.with_engine(lambda engine: engine.trim(age, file))


def _where(chosen: settings_.StoreSettings) -> str:
    """Which store, without what is secret about it."""
    if chosen.database_url:
        return "PostgreSQL: " + re.sub(r"//[^@/]*@", "//", chosen.database_url).partition("?")[0]
    return f"SQLite: {chosen.database_file}"


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
        "workers": [name for _, name, *_ in workers],
    }


def _text(value: Any) -> str:
    return ", ".join(value) or "none" if isinstance(value, list) else str(value)
