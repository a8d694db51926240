"""One row for each rollout: what lists and pages show, folded from its events.

A row carries the machine's state as it was after the row's last event, so that whoever reads a
row that lags can fold the few events it misses and show what is true now.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from fairlead.domain.rollouts import chronicle, intent, memory, states, view
from fairlead.domain.rollouts.machine import ROLLOUT
from fairlead.engine import codec, library, projections

NAME = "rollouts"
SHAPE = 2
"""Raise it when the fold or the row changes: rows of another shape are built anew."""

_PREFIX = f"{ROLLOUT.name}/"
_WORDS = codec.Codec(ROLLOUT)
_QUALIFIED = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """A rollout in one line."""

    name: str
    """Its whole name; on Kubernetes it ends in the object's UID."""

    title: str
    """The name as people say it."""

    phase: str
    sentence: str
    stable: str
    """The version that carries traffic when nothing is under way."""

    primary: str
    """The version in the primary's slot, which a promotion changes before it ends."""

    canary: str
    """Empty while no other version is under way."""

    primary_weight: int
    canary_weight: int
    step: int
    """Counted from 1; 0 where it is at none."""

    steps: int
    since: dt.datetime
    updated: dt.datetime
    outcome: str = ""
    """How the last run ended: Promoted, TakenBack, Superseded, Reverted."""

    why: str = ""
    """Why it is paused, stalled or going home, or else why the last run ended."""

    baseline_weight: int = 0
    """Of the stable version once more, beside the canary; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A row as it is kept: the state after event `seq`, and the runs that led to it."""

    seq: int
    state: states.State
    runs: chronicle.Runs
    updated: dt.datetime

    def summary(self) -> Summary:
        """What a list shows; a rollout that was never founded has none."""
        state = self.state
        assert not isinstance(state, states.Unknown)
        return _summary(state, self.updated)


BLANK = Sheet(0, states.Unknown(), (), dt.datetime.min.replace(tzinfo=dt.UTC))


def follow(sheet: Sheet, events: Iterable[library.EventView]) -> Sheet:
    """The sheet after these events; those it has seen already change nothing."""
    for told in events:
        if told.seq <= sheet.seq:
            continue
        row = codec.Encoded(told.type, told.version, msgspec.json.encode(told.data).decode())
        event = _WORDS.events.decode(row)
        state = memory.evolve(sheet.state, event)
        runs = chronicle.note(sheet.runs, event, state, told.at)
        sheet = Sheet(told.seq, state, runs, told.at)
    return sheet


def write(sheet: Sheet) -> projections.Row:
    """The sheet as a row, with its summary for those who read rows only."""
    kept = _WORDS.states.encode(sheet.state)
    known = not isinstance(sheet.state, states.Unknown)
    row: projections.Row = msgspec.to_builtins(
        {
            "shape": SHAPE,
            "seq": sheet.seq,
            "updated": sheet.updated,
            "summary": sheet.summary() if known else None,
            "runs": sheet.runs,
            "state": {"type": kept.type, "version": kept.version},
        }
    )
    row["state"]["data"] = msgspec.json.decode(kept.data)
    return row


def read(row: projections.Row | None) -> Sheet:
    """A kept row; one of another shape counts as none, for events tell it again."""
    if row is None or row.get("shape") != SHAPE:
        return BLANK
    kept = row["state"]
    data = msgspec.json.encode(kept["data"]).decode()
    state = _WORDS.states.decode(codec.Encoded(kept["type"], kept["version"], data))
    return Sheet(
        row["seq"],
        state,
        msgspec.convert(row["runs"], chronicle.Runs),
        msgspec.convert(row["updated"], dt.datetime),
    )


def title(name: str) -> str:
    """NAMESPACE/NAME of what Kubernetes knows with a UID; any other name as it is."""
    parts = name.split("/")
    return "/".join(parts[:2]) if len(parts) == _QUALIFIED else name


def _key(event: library.EventView) -> str | None:
    return event.stream if event.stream.startswith(_PREFIX) else None


def _fold(
    row: projections.Row | None, events: Sequence[library.EventView]
) -> projections.Row | None:
    sheet = read(row)
    for event in events:
        # One that was made again under its name starts afresh.
        sheet = follow(BLANK if isinstance(sheet.state, states.Gone) else sheet, [event])
    return None if isinstance(sheet.state, states.Gone) else write(sheet)


ROLLOUTS = projections.Projection(NAME, SHAPE, _key, _fold)


def _summary(state: states.Known | states.Gone, updated: dt.datetime) -> Summary:
    book = state.book
    run = state.run if isinstance(state, states.Running) else None
    primary = book.stable if isinstance(state, states.Gone) else intent.primary_version(state)
    split = book.route.split
    at_step = state.step + 1 if isinstance(state, states.Moving | states.Watching) else 0
    return Summary(
        name=book.name,
        title=title(book.name),
        phase=view.phase(state).value,
        sentence=view.sentence(state),
        stable=str(book.stable),
        primary=str(primary),
        canary=str(run.target) if run else "",
        primary_weight=int(split.primary),
        canary_weight=int(split.canary),
        baseline_weight=int(split.baseline),
        step=at_step,
        steps=len(run.plan) if run else 0,
        since=book.since,
        updated=updated,
        outcome=book.outcome.ending.value if book.outcome else "",
        why=_why(state),
    )


def _why(state: states.Known | states.Gone) -> str:
    book = state.book
    match state:
        case states.GoingHome(why=why, stalled=stalled):
            return stalled or why
        case states.Promoting(stalled=stalled) if stalled:
            return stalled
        case states.Queued() | states.Moving() | states.Watching() | states.Promoting():
            return book.paused.why if book.paused else state.run.why
        case _:
            return book.outcome.why if book.outcome else ""
