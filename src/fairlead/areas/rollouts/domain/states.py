"""Where a rollout can be, and what it knows in each place.

          Request                         changed version
Unknown ─► Initializing ─► Idle ◄──────────┐ ────────────► Queued
                            ▲              │                 │ slot, window, start checks
                            │ promoted     │ rolled back     ▼
                        Promoting     RollingBack ◄─────── Shifting ◄──┐
                            ▲              ▲                 │ applied │ next step
                            │ last step    └──────────── Analysing ────┘
                            └────────────────────────────────┘           Delete, anywhere ─► Gone
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.analysis.limits import Tally
from fairlead.areas.rollouts.domain.events import Ending, PendingRun
from fairlead.areas.rollouts.domain.observation import Observation
from fairlead.areas.rollouts.domain.plan import steps
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.traffic.routes import PRIMARY_ONLY, Route

FIRST_OBSERVATION = dt.timedelta(seconds=5)
"""Who changes something reports it; we observe for what nobody reported."""

LONGEST_PAUSE = dt.timedelta(minutes=1)
SELDOM = dt.timedelta(minutes=5)
"""Where nothing is asked of the world, we observe only in case a report was lost."""


def observation_pause(nth: int) -> dt.timedelta:
    """How long after the nth observation the next one is due."""
    return min(FIRST_OBSERVATION * (1 << min(nth, 10)), LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Halt:
    """Who paused, why and when."""

    by: str
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Ask:
    """What a slot was last asked to hold."""

    order: int
    version: Version
    replicas: int | None
    at_least: int
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the last run ended."""

    ending: Ending
    target: Version
    why: str
    at: dt.datetime


@dataclass(frozen=True, slots=True)
class Follower:
    """A step of a plan that waits for the end of a version."""

    stream: str
    version: Version


@dataclass(frozen=True, slots=True)
class RolloutRecord:
    """What a rollout knows wherever it is."""

    name: str
    spec: Spec
    stable: Version
    desired: Version
    since: dt.datetime
    """When we came to where we are."""

    replicas: int | None = None
    peak: int = 0
    """How many pods carry all traffic of this run, as last asked for and not 0.

    Under an autoscaler, which shrinks a primary that gave traffic away: the most it had.
    """

    generation: int = 0
    kept: tuple[Version, ...] = ()
    """Earlier stable versions, the newest first."""

    runs: int = 0
    due: PendingRun | None = None
    paused: Halt | None = None
    outcome: Outcome | None = None
    order: int = 0
    route: Route = PRIMARY_ONLY
    route_order: int = 0
    route_at: dt.datetime | None = None
    primary: Ask | None = None
    primary_from: int = 0
    """The order with which the primary was first asked to be what it is to be now."""

    canary: Ask | None = None
    baseline: Ask | None = None
    removal: int | None = None
    removal_at: dt.datetime | None = None
    observed: Observation | None = None
    observations: int = 0
    observe_at: dt.datetime | None = None
    opens: dt.datetime | None = None
    override: bool = False
    override_spent: bool = False
    serial: int = 0
    follower: Follower | None = None

    @property
    def full(self) -> int:
        """How many pods of the primary carry all traffic."""
        if self.replicas is not None:
            # Nothing sleeps before its run is over.
            return max(1, self.replicas or self.peak)
        pods = self.observed.primary if self.observed else None
        return max(1, pods.desired if pods else 1)

    @property
    def shown(self) -> bool:
        """Whether the proxies show the route we asked for last."""
        route = self.observed.route if self.observed else None
        return (
            route is not None
            and route.order == self.route_order
            and route.weight == self.route.weight
            and not route.drift
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One version's way, with the rules it began with."""

    number: int
    target: Version
    why: str
    spec: Spec
    started: dt.datetime
    skip_steps: bool = False
    override: bool = False
    slot_asked: bool = False
    slot: bool = False
    gate: str = ""
    """The group's gate we wait at."""

    passed: tuple[str, ...] = ()

    @property
    def plan(self) -> steps.Plan:
        return steps.plan(self.spec.strategy)

    @property
    def rules(self) -> Spec:
        """The rules as they bind: a run that skips its steps goes alone, not with the group."""
        return dataclasses.replace(self.spec, group=None) if self.skip_steps else self.spec

    @property
    def last(self) -> int:
        return len(self.plan) - 1


@dataclass(frozen=True, slots=True)
class CheckRound:
    """What the checks of one place have measured so far."""

    started: dt.datetime
    ticket: int = 0
    asked: dt.datetime | None = None
    """When the round that is not yet answered was asked for."""

    tallies: Mapping[str, Tally] = field(default_factory=dict)
    measured: Mapping[str, dt.datetime] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    """The last one of each check."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """State: nothing was ever requested."""


@dataclass(frozen=True, slots=True)
class Initializing:
    """State: the initial rollout; nothing has traffic yet."""

    rollout: RolloutRecord


@dataclass(frozen=True, slots=True)
class Idle:
    """State: the stable version has all traffic, and no run is in progress."""

    rollout: RolloutRecord


@dataclass(frozen=True, slots=True)
class Queued:
    """State: a run waits for a slot, for its window, for start checks or for a person."""

    rollout: RolloutRecord
    run: Run
    round: CheckRound


@dataclass(frozen=True, slots=True)
class Shifting:
    """State: the canary is made ready for a step, then given its weight."""

    rollout: RolloutRecord
    run: Run
    step: int


@dataclass(frozen=True, slots=True)
class Analysing:
    """State: the canary has its weight; checks, times and people decide what follows."""

    rollout: RolloutRecord
    run: Run
    step: int
    round: CheckRound
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Promoting:
    """State: the canary has all traffic while the primary becomes the new version."""

    rollout: RolloutRecord
    run: Run
    back: int = 0
    """How many of the promotion steps back to the primary were asked for."""

    stalled: str = ""


@dataclass(frozen=True, slots=True)
class RollingBack:
    """State: the canary is given up; its traffic goes to the stable version, then it leaves."""

    rollout: RolloutRecord
    run: Run
    why: str
    ending: Ending
    stalled: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """State: the rollout was deleted."""

    rollout: RolloutRecord


Running = Queued | Shifting | Analysing | Promoting | RollingBack
Known = Initializing | Idle | Running
State = Unknown | Known | Gone
