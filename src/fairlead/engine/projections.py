"""Events folded into rows that views can read; built again from zero whenever they change.

A projection is a pure fold. Its rows and its bookmark move in one commit, and the bookmark
moves only from where it was read, so two projectors never count an event twice.
"""

import asyncio
import functools
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

import msgspec
import structlog

from fairlead.engine import clock, runner, visibility
from fairlead.engine.store import protocol

_CHUNK = 500
_UNRESTORED = visibility.Place(0, -1)
"""Where a projection begins: rows of streams without their first events are put there first."""

_log = structlog.get_logger(__name__)

Row = dict[str, Any]
Fold = Callable[[Row | None, Sequence[visibility.EventView]], Row | None]
"""The row after all these events of it, in their order; None for no row."""

_Step = tuple[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Projection:
    """One table of a view: which row an event belongs to, and what it makes of it."""

    name: str
    version: int
    """Raise it when the fold changes: the rows are then built again from the first event."""

    key: Callable[[visibility.EventView], str | None]
    fold: Fold
    restore: Callable[[visibility.SnapshotView], tuple[str, Row] | None] | None = None
    """The key and the row of a stream whose first events were archived, from the state they led
    to. Without it the fold needs every event, and no event may be archived before its stream."""


def one_by_one(step: Callable[[Row | None, visibility.EventView], Row | None]) -> Fold:
    """A fold by what each event makes of the row."""
    return lambda row, events: functools.reduce(step, events, row)


class Read(Protocol):
    """Runs a function on a reading session, off the event loop."""

    def __call__(self, function: Callable[[protocol.Session], Any], /) -> Awaitable[Any]: ...


class Projector:
    """Keeps projections up to date."""

    def __init__(
        self,
        projections: Sequence[Projection],
        runner_: runner.Runner,
        read: Read,
        wall: clock.Clock,
        poll: timedelta,
    ) -> None:
        self._projections = projections
        self._runner = runner_
        self._read = read
        self._clock = wall
        self._poll = poll
        self._wake = asyncio.Event()

    def nudge(self) -> None:
        if self._projections:
            self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            for projection in self._projections:
                try:
                    await self._follow(projection)
                except Exception as error:  # noqa: BLE001 - one view's fault must not stop the others
                    _log.warning("projection_waits", name=projection.name, error=repr(error))
            # Rows may lag, for readers fold what a row has not seen; and a row that is written
            # once for many events costs a part of what each event's own row would.
            await self._clock.wait(asyncio.Event(), self._clock.now() + self._poll)
            await self._clock.wait(self._wake, self._clock.now() + self._poll)

    async def catch_up(self) -> None:
        """Read every projection to the end of the feed."""
        for projection in self._projections:
            await self._follow(projection)

    async def rebuild(self, name: str) -> None:
        """Forget the rows and read from the first event."""
        for projection in self._projections:
            if projection.name == name:
                await self._start(projection, "restart_projection")
        await self.catch_up()

    async def _follow(self, projection: Projection) -> None:
        while True:
            try:
                if not await self._advance(projection):
                    return
            except protocol.Lost:
                # Another projector moved the bookmark after we read it: go on from there.
                continue

    async def _advance(self, projection: Projection) -> bool:
        rows = await self._read(lambda s: s.rows("get_projection", name=projection.name))
        if rows and rows[0][0] > projection.version:
            # A newer program keeps this view. Starting over, as it would do in turn, the two
            # would undo each other's work for as long as both run.
            return False
        if not rows or rows[0][0] < projection.version:
            await self._start(projection, "start_projection")
            return True
        seen = visibility.Place(rows[0][1], rows[0][2])
        if seen == _UNRESTORED:
            await self._restore(projection)
            return True
        events: visibility.Page[visibility.EventView] = await self._read(
            lambda s: visibility.feed(s, seen, _CHUNK)
        )
        if not events:
            return False
        changes = await self._fold(projection, events)
        steps = _steps(projection, changes, seen, events[-1].place)
        await self._runner.run_on_writer(lambda session: _move(session, steps))
        return events.more

    async def _fold(
        self, projection: Projection, events: Sequence[visibility.EventView]
    ) -> dict[str, Row | None]:
        keyed: defaultdict[str, list[visibility.EventView]] = defaultdict(list)
        for event in events:
            if (key := projection.key(event)) is not None:
                keyed[key].append(event)
        keys = sorted(keyed)
        found = await self._read(lambda s: s.rows("get_projected", name=projection.name, keys=keys))
        before: dict[str, Row] = {key: msgspec.json.decode(data) for key, data in found}
        return {key: projection.fold(before.get(key), keyed[key]) for key in keys}

    async def _restore(self, projection: Projection) -> None:
        """Rows for what archived events led to.

        Until this is done no further event is archived, for the bookmark is before all of them.
        """
        values = {"name": projection.name, "version": projection.version}
        here = {**values, "seen_tx": _UNRESTORED.tx, "seen_position": _UNRESTORED.position}
        after, more = 0, projection.restore is not None
        while more and projection.restore is not None:
            page = await self._read(functools.partial(visibility.snapshots, after=after))
            made = [row for one in page if (row := projection.restore(one)) is not None]
            kept = [(key, msgspec.json.encode(row).decode()) for key, row in made]
            rows_ = {"name": projection.name, "rows": msgspec.json.encode(kept).decode()}
            # The bookmark stays, and is asked for: a slow projector must not put rows of the
            # beginning over those that a quicker one has folded further.
            stay = {**here, "tx": _UNRESTORED.tx, "position": _UNRESTORED.position}
            steps: list[_Step] = [("advance_projection", stay), ("put_projected", rows_)]
            await self._runner.run_on_writer(functools.partial(_move, steps=steps))
            after, more = (page[-1].number if page else after), page.more
        begun: list[_Step] = [("advance_projection", {**here, "tx": 0, "position": 0})]
        await self._runner.run_on_writer(functools.partial(_move, steps=begun))

    async def _start(self, projection: Projection, query: str) -> None:
        steps: list[_Step] = [
            # First: it waits for whoever archives events, whose snapshots are then seen.
            (query, {"name": projection.name, "version": projection.version}),
            ("clear_projected", {"name": projection.name}),
        ]
        await self._runner.run_on_writer(functools.partial(_move, steps=steps))


def rows(
    session: protocol.Session, name: str, after: str = "", limit: int = 100
) -> visibility.Page[tuple[str, Row]]:
    """A projection's rows, in order of their keys."""
    found, more = session.page(
        "list_projected", limit, visibility.MOST_BYTES, name=name, after=after
    )
    return visibility.Page(((key, msgspec.json.decode(data)) for key, data in found), more=more)


def rows_of(session: protocol.Session, name: str, keys: Sequence[str]) -> list[tuple[str, Row]]:
    """The rows of these keys, where a projection has them."""
    found = session.rows("get_projected", name=name, keys=list(keys))
    return [(key, msgspec.json.decode(data)) for key, data in found]


def _steps(
    projection: Projection,
    changes: dict[str, Row | None],
    seen: visibility.Place,
    now: visibility.Place,
) -> list[_Step]:
    kept = [(key, msgspec.json.encode(row).decode()) for key, row in changes.items() if row]
    gone = [key for key, row in changes.items() if not row]
    return [
        # First, so that whoever comes second finds the bookmark moved and stops here.
        (
            "advance_projection",
            {
                "name": projection.name,
                "version": projection.version,
                "tx": now.tx,
                "position": now.position,
                "seen_tx": seen.tx,
                "seen_position": seen.position,
            },
        ),
        ("put_projected", {"name": projection.name, "rows": msgspec.json.encode(kept).decode()}),
        ("drop_projected", {"name": projection.name, "keys": gone}),
    ]


def _move(session: protocol.Session, steps: list[_Step]) -> None:
    session.script(steps, first_must_hit=True)
