"""Attributes for streams of before: of a machine that now declares others, all rows are rebuilt.

A batch writes only what changes between two states, so a stream from before an attribute was
declared would never get it. Which declaration the rows follow is kept as a fact; a worker that
starts with another one goes through the machine's streams, a page in a transaction of its own.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import msgspec
import structlog

from fairlead import errors
from fairlead.engine import attributes, batch, codec
from fairlead.engine.store import protocol

PAGE = 200
T = TypeVar("T")
_log = structlog.get_logger(__name__)


class Write(Protocol):
    """Runs a small writing function between two batches."""

    def __call__(self, function: Callable[[protocol.Session], T], /) -> Awaitable[T]: ...


async def catch_up(
    write: Write, registry: batch.MachineRegistry, pause: Callable[[], Awaitable[object]]
) -> None:
    """Rebuild what is due, a page between two batches: work does not wait for it."""
    declaring = (each for each in registry.machines if each.attributes is not None)
    for machine in declaring:
        while not await _is_caught_up(write, registry.of(machine.name)):
            await pause()


async def _is_caught_up(write: Write, registered: batch.RegisteredMachine) -> bool:
    """False where it is worth another try."""
    try:
        if await write(functools.partial(is_due, registered=registered)):
            await _rebuild(write, registered)
    except (errors.FairleadError, protocol.Lost) as error:
        told = str(error)
        _log.warning("attributes_not_rebuilt", machine=registered.machine.name, error=told)
        # What a newer program wrote is not ours to rebuild, and stays so.
        passing = isinstance(error, (errors.Unavailable, protocol.Lost))
        return not passing or isinstance(error, errors.Newer)
    return True


async def _rebuild(write: Write, registered: batch.RegisteredMachine) -> None:
    after: int | None = 0
    while after is not None:
        try:
            after = await write(functools.partial(rebuild_page, registered=registered, after=after))
        except protocol.Lost:
            continue  # another writer was on the same streams: the page is read again
    await write(functools.partial(finish, registered=registered))
    _log.debug("attributes_rebuilt", machine=registered.machine.name)


def is_due(session: protocol.Session, registered: batch.RegisteredMachine) -> bool:
    """Whether rows were written by another declaration than this program's."""
    known = session.rows("get_fact", name=_fact(registered))
    return registered.machine.attributes is not None and known != [(_declaration(registered),)]


def rebuild_page(
    session: protocol.Session, registered: batch.RegisteredMachine, after: int
) -> int | None:
    """The rows of the next streams; the number to go on from, None after the last."""
    asked = {"machine": registered.machine.name, "after": after, "limit": PAGE}
    page = session.rows("streams_of", **asked)
    if not page:
        return None
    with session.transaction() as transaction:
        # Locked: else a batch could commit between our reading of a state and our writing of
        # what it is found by, and the older would stay.
        loaded = transaction.load(protocol.Needed([name for _, name in page], careful=True))
        writes = protocol.Writes(0)
        for row in loaded.streams:
            writes.attributes += _of(registered, row)
        transaction.write(writes)
    return int(page[-1][0])


def finish(session: protocol.Session, registered: batch.RegisteredMachine) -> None:
    """Every stream was visited: from now on, batches keep the rows as they must be."""
    declared = registered.machine.attributes
    kinds = list(declared.kinds) if declared else []
    session.rows("forget_attributes", machine=registered.machine.name, names=kinds)
    session.rows("set_fact", name=_fact(registered), value=_declaration(registered))


def rebuild(session: protocol.Session, registered: batch.RegisteredMachine) -> None:
    """All of it, due or not, on a session of one's own."""
    after: int | None = 0
    while after is not None:
        after = rebuild_page(session, registered, after)
    finish(session, registered)


def _of(
    registered: batch.RegisteredMachine, row: protocol.StreamRow
) -> list[protocol.NewAttribute]:
    machine = registered.machine
    try:
        encoded = codec.Encoded(row.state_type, row.state_version, row.state)
        found = attributes.values(machine, registered.codec.states.decode(encoded))
    except (errors.Corrupt, ValueError) as error:
        # One stream that cannot be read is not found; the others are.
        _log.warning("stream_not_indexed", stream=row.name, error=str(error))
        return []
    names = machine.attributes.kinds if machine.attributes else ()
    return [protocol.NewAttribute(row.id, machine.name, name, found.get(name)) for name in names]


def _fact(registered: batch.RegisteredMachine) -> str:
    return f"attributes of {registered.machine.name}"


def _declaration(registered: batch.RegisteredMachine) -> str:
    declared = registered.machine.attributes
    if declared is None:
        return ""
    kinds = {
        name: kind if isinstance(kind, tuple) else kind.__name__
        for name, kind in sorted(declared.kinds.items())
    }
    return msgspec.json.encode([declared.version, kinds]).decode()
