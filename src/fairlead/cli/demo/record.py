"""What the demo saw of its own streams, and only that: folded from the feed of events.

Nothing here asks the worker how it is doing. Each stream's state is built again from its
events, so that the proof can hold it against the state that the store kept.
"""

from dataclasses import dataclass, field
from typing import Any

from fairlead._sample.messages import Arrived
from fairlead.cli.demo import scene
from fairlead.engine import batch, library


@dataclass(slots=True)
class Record:
    """The story so far."""

    plan: scene.Plan
    repertoire: batch.Repertoire
    place: library.Place
    events: int = 0
    home: int = 0
    faults: list[str] = field(default_factory=list)
    """Sequences that were repeated or skipped."""

    seqs: dict[str, int] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)
    causes: set[tuple[str, str]] = field(default_factory=set)

    @property
    def transitions(self) -> int:
        """Commands that changed a stream, however many events each made."""
        return len(self.causes)

    def take(self, seen: list[library.EventView]) -> None:
        for event in seen:
            self.place = event.place
            if self.plan.owns(event.stream):
                self._take(event)

    def _take(self, event: library.EventView) -> None:
        expected = self.seqs.get(event.stream, 0) + 1
        if event.seq != expected:
            self.faults.append(f"{event.stream} has {event.seq} where {expected} comes next")
        self.events += 1
        self.seqs[event.stream] = event.seq
        self.causes.add((event.stream, event.cause))
        self._fold(event)

    def _fold(self, event: library.EventView) -> None:
        spoken = self.repertoire.of(event.stream)
        happened = spoken.codec.events.parse(event.type, event.data)
        state = self.states.get(event.stream, spoken.machine.initial)
        self.states[event.stream] = spoken.machine.evolve(state, happened)
        if isinstance(happened, Arrived):
            self.home += 1
