"""A decision while it is being made: events so far, and the state they lead to.

Every phase records its events here; `machine` turns them into effects, sends and timers.
"""

import dataclasses
import datetime as dt

from fairlead.areas.rollouts.domain import events as rollout_events
from fairlead.areas.rollouts.domain import evolve, observation, states
from fairlead.areas.rollouts.domain.plan import steps, windows
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.traffic.routes import Route


class DecisionBuilder:
    """Events and where they lead."""

    def __init__(self, state: states.State, now: dt.datetime) -> None:
        self.state = state
        self.now = now
        self.steps: list[tuple[rollout_events.Event, states.State]] = []
        """Each event with the state it led to."""

    @property
    def events(self) -> tuple[rollout_events.Event, ...]:
        return tuple(event for event, _ in self.steps)

    @property
    def rollout(self) -> states.RolloutRecord:
        assert not isinstance(self.state, states.Unknown)
        return self.state.rollout

    def record(self, *events: rollout_events.Event) -> None:
        for event in events:
            self.state = evolve.evolve(self.state, event)
            self.steps.append((event, self.state))

    def ask_route(self, route: Route, why: str) -> None:
        self.record(rollout_events.RouteRequested(self.rollout.order + 1, route, why, self.now))

    def ask_primary(self, version: Version, at_least: int = 1) -> None:
        rollout, replicas = self.rollout, self.rollout.replicas
        if replicas == 0 and isinstance(self.state, states.Running):
            # Nothing is put to sleep while a run shares traffic out; it sleeps once that ends.
            replicas = rollout.full
        self.record(
            rollout_events.VersionRequested(
                rollout.order + 1, Slot.PRIMARY, version, replicas, at_least, self.now
            )
        )

    def ask_canary(self, version: Version, replicas: int) -> None:
        self.record(
            rollout_events.VersionRequested(
                self.rollout.order + 1, Slot.CANARY, version, replicas, replicas, self.now
            )
        )  # fmt: skip

    def ask_baseline(self, replicas: int) -> None:
        """The stable version once more, beside the canary."""
        rollout = self.rollout
        asked = rollout_events.VersionRequested(
            rollout.order + 1, Slot.BASELINE, rollout.stable, replicas, replicas, self.now
        )
        self.record(asked)

    def ask_removal(self) -> None:
        self.record(rollout_events.RemovalRequested(self.rollout.order + 1, self.now))

    def begin_move(self, step: int) -> None:
        """On to a step: first the pods it needs, at the scale of its load."""
        assert isinstance(self.state, states.Running)
        run, route = self.state.run, self.rollout.route
        self.record(rollout_events.ShiftStarted(step, run.plan[step].weight, self.now))
        canary, baseline = _needs(run, step, self.rollout)
        carrying = self.rollout.canary if route.reaches_canary else None
        self.ask_canary(run.target, _no_smaller(canary, carrying))
        if baseline:
            carrying = self.rollout.baseline if route.split.baseline else None
            self.ask_baseline(_no_smaller(baseline, carrying))

    def rescale(self) -> None:
        """Within a step only up: its pods follow the total, and do not flap with an autoscaler."""
        if not isinstance(self.state, states.Shifting | states.Analysing):
            # While promoting, the primary itself grows to take the traffic back.
            return
        rollout, run = self.rollout, self.state.run
        canary, baseline = _needs(run, self.state.step, rollout)
        if rollout.canary is not None and canary > rollout.canary.at_least:
            self.ask_canary(run.target, canary)
        if rollout.baseline is not None and baseline > rollout.baseline.at_least:
            self.ask_baseline(baseline)

    def start_rollback(
        self, why: str, ending: rollout_events.Ending = rollout_events.Ending.ROLLED_BACK
    ) -> None:
        """Give the canary up; before anything moved there is nothing to roll back."""
        if isinstance(self.state, states.Queued):
            self.end_run(ending, why)
        else:
            self.record(rollout_events.RollbackStarted(why, ending, self.now))

    def end_run(self, ending: rollout_events.Ending, why: str) -> None:
        assert isinstance(self.state, states.Running)
        run, unheard = self.state.run, isinstance(self.state, states.Queued)
        mark = rollout_events.RunEnded(ending, run.target, why, self.now, run.override)
        self.record(dataclasses.replace(mark, unheard=unheard, spec=run.rules))

    def held(self) -> bool:
        """Whether a step up must wait: for a person, or for the window."""
        assert isinstance(self.state, states.Running)
        if self.rollout.paused is not None:
            return True
        if self.state.run.skip_steps:
            return False
        until = windows.next_opening(self.state.run.spec.windows, self.now)
        if until is not None and until != self.rollout.opens:
            self.record(rollout_events.WindowAwaited(until))
        return until is not None


def _needs(run: states.Run, step: int, rollout: states.RolloutRecord) -> tuple[int, int]:
    """How many pods a step takes of the canary and of its baseline; 0 where it has none."""
    place, scale = run.plan[step], run.spec.strategy.scale
    # An autoscaler that sees only the primary shrinks it when the canary takes its traffic.
    total = max(rollout.full, rollout.peak) if rollout.replicas is None else rollout.full
    weight = place.route.split.baseline
    beside = steps.pods(scale, weight, total) if weight else 0
    return steps.pods(scale, place.load, total), beside


def _no_smaller(need: int, before: states.Ask | None) -> int:
    """What carries traffic is never made smaller."""
    return max(need, before.at_least) if before is not None else need


def lost(state: states.Shifting | states.Analysing) -> str:
    """Why the canary or its baseline cannot keep what it has, or nothing."""
    rollout = state.rollout
    if not rollout.route.reaches_canary or rollout.observed is None:
        return ""
    if rollout.route_at is not None and rollout.observed.at < rollout.route_at:
        return ""
    if not observation.ready(rollout.observed.canary, state.run.target.revision):
        said = f"the canary has no ready pod at {rollout.route.weight} %"
        return observation.with_trouble(said, rollout.observed.canary)
    weight = rollout.route.split.baseline
    if weight and not observation.ready(rollout.observed.baseline, rollout.stable.revision):
        said = f"the baseline has no ready pod at {weight} %"
        return observation.with_trouble(said, rollout.observed.baseline)
    return ""


def goal(state: states.Shifting | states.Analysing) -> Route:
    """The step's route; a baseline that has joined stays so until the run is over."""
    route = state.run.plan[state.step].route
    return dataclasses.replace(route, compared=route.compared or state.rollout.route.compared)


def is_fresh(rollout: states.RolloutRecord) -> bool:
    """Whether anything was observed since this phase began."""
    return rollout.observed is not None and rollout.observed.at >= rollout.since


def canary_gone(rollout: states.RolloutRecord) -> bool:
    """Whether the slots of canary and baseline were observed empty after we asked for that."""
    if rollout.observed is None or rollout.removal_at is None:
        return False
    # What was observed in the very moment of asking was observed before it was done.
    empty = rollout.observed.canary is None and rollout.observed.baseline is None
    return rollout.observed.at > rollout.removal_at and empty
