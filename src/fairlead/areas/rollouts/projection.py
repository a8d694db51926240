"""One row for each rollout: what lists and pages show, folded from its events.

A row carries the machine's state as it was after the row's last event, so that whoever reads a
row that lags can fold the few events it misses and show what is true now.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from fairlead.areas.rollouts import history
from fairlead.areas.rollouts.domain import evolve, names, spec_change, states, view
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.engine import codec, projections, visibility

NAME = "rollouts"
SHAPE = 4
"""Raise it when the fold or the row changes: rows of another shape are built anew."""

_PREFIX = f"{ROLLOUT.name}/"
_WORDS = codec.Codec(ROLLOUT)


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
    """The version that has all traffic when no run is in progress."""

    primary: str
    """The version in the primary's slot, which a promotion changes before it ends."""

    canary: str
    """Empty while no run is in progress."""

    primary_weight: int
    canary_weight: int
    step: int
    """Counted from 1; 0 where it is at none."""

    steps: int
    since: dt.datetime
    updated: dt.datetime
    outcome: str = ""
    """How the last run ended: Promoted, RolledBack, Superseded, Reverted."""

    why: str = ""
    """Why it is paused, stalled or rolling back, or else why the last run ended."""

    baseline_weight: int = 0
    """Of the stable version once more, beside the canary; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A row as it is kept: the state after event `seq`, and the runs that led to it."""

    seq: int
    state: states.State
    runs: history.Runs
    updated: dt.datetime

    def summary(self, now: dt.datetime | None = None) -> Summary:
        """What a list shows; a rollout that nothing was requested of has none."""
        state = self.state
        assert not isinstance(state, states.Unknown)
        return _summary(state, self.updated, now)


BLANK = Sheet(0, states.Unknown(), (), dt.datetime.min.replace(tzinfo=dt.UTC))


def follow(sheet: Sheet, events: Iterable[visibility.EventView]) -> Sheet:
    """The sheet after these events; those it holds already change nothing."""
    for recorded in events:
        if recorded.seq <= sheet.seq:
            continue
        data = msgspec.json.encode(recorded.data).decode()
        row = codec.Encoded(recorded.type, recorded.version, data)
        event = _WORDS.events.decode(row)
        state = evolve.evolve(sheet.state, event)
        runs = history.note(sheet.runs, event, state, recorded.at)
        sheet = Sheet(recorded.seq, state, runs, recorded.at)
    return sheet


def restored(kept: visibility.SnapshotView) -> Sheet:
    """The sheet of a rollout whose first events were archived; earlier runs are not told."""
    state = _WORDS.states.decode(kept.state)
    return Sheet(kept.seq, state, history.resumed(state), kept.at)


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
        msgspec.convert(row["runs"], history.Runs),
        msgspec.convert(row["updated"], dt.datetime),
    )


def _key(event: visibility.EventView) -> str | None:
    return event.stream if event.stream.startswith(_PREFIX) else None


def _fold(
    row: projections.Row | None, events: Sequence[visibility.EventView]
) -> projections.Row | None:
    sheet = read(row)
    for event in events:
        # One that was made again under its name starts afresh.
        sheet = follow(BLANK if isinstance(sheet.state, states.Gone) else sheet, [event])
    return None if isinstance(sheet.state, states.Gone) else write(sheet)


def _restore(kept: visibility.SnapshotView) -> tuple[str, projections.Row] | None:
    if not kept.stream.startswith(_PREFIX):
        return None
    sheet = restored(kept)
    return None if isinstance(sheet.state, states.Gone) else (kept.stream, write(sheet))


ROLLOUTS = projections.Projection(NAME, SHAPE, _key, _fold, _restore)


def _summary(
    state: states.Known | states.Gone, updated: dt.datetime, now: dt.datetime | None
) -> Summary:
    status, rollout = view.shown(state, now), state.rollout
    primary = (
        rollout.stable if isinstance(state, states.Gone) else spec_change.primary_version(state)
    )
    return Summary(
        name=rollout.name,
        title=names.title(rollout.name),
        phase=status.phase,
        sentence=status.message,
        stable=status.stable_version,
        primary=str(primary),
        canary=status.canary_version,
        primary_weight=status.primary_weight,
        canary_weight=status.canary_weight,
        baseline_weight=status.baseline_weight,
        step=status.step,
        steps=status.steps,
        since=rollout.since,
        updated=updated,
        outcome=rollout.outcome.ending.value if rollout.outcome else "",
        why=_why(state),
    )


def _why(state: states.Known | states.Gone) -> str:
    rollout = state.rollout
    match state:
        case states.RollingBack(why=why, stalled=stalled):
            return stalled or why
        case states.Promoting(stalled=stalled) if stalled:
            return stalled
        case states.Queued() | states.Shifting() | states.Analysing() | states.Promoting():
            if (halt := rollout.paused) is None:
                return state.run.why
            return halt.why or view.paused(halt)
        case _:
            return rollout.outcome.why if rollout.outcome else ""
