"""Where a rollout can be, and what it knows in each place.

                    Want                     changed version
Unknown ─► Founding ─────► Idle ◄──────────┐ ────────────► Queued
                            ▲              │                 │ room, window, start checks
                            │ promoted     │ taken back      ▼
                        Promoting      GoingHome ◄──────── Moving ◄──┐
                            ▲              ▲                 │ shown │ next step
                            │ last step    └──────────── Watching ───┘
                            └────────────────────────────────┘           Delete, anywhere ─► Gone
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead.domain.analysis.limits import Tally
from fairlead.domain.rollouts import steps
from fairlead.domain.rollouts.events import Ending, Errand
from fairlead.domain.rollouts.sight import Sight
from fairlead.domain.rollouts.spec import Spec, Version
from fairlead.domain.traffic.routes import AT_HOME, Route

FIRST_LOOK = dt.timedelta(seconds=5)
"""Who changes something tells us; a look is for what nobody told."""

LONGEST_LOOK = dt.timedelta(minutes=1)
SELDOM = dt.timedelta(minutes=5)
"""Where nothing is asked of the world, a look is only there in case we were not told."""


def look_pause(nth: int) -> dt.timedelta:
    """How long after the nth look the next one is due."""
    return min(FIRST_LOOK * (1 << min(nth, 10)), LONGEST_LOOK)


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
class Book:
    """What a rollout knows wherever it is."""

    name: str
    spec: Spec
    stable: Version
    wanted: Version
    since: dt.datetime
    """When we came to where we are."""

    replicas: int | None = None
    generation: int = 0
    kept: tuple[Version, ...] = ()
    """Earlier stable versions, the newest first."""

    runs: int = 0
    due: Errand | None = None
    paused: Halt | None = None
    outcome: Outcome | None = None
    order: int = 0
    route: Route = AT_HOME
    route_order: int = 0
    route_at: dt.datetime | None = None
    primary: Ask | None = None
    primary_from: int = 0
    """The order with which the primary was first asked to be what it is to be now."""

    canary: Ask | None = None
    baseline: Ask | None = None
    removal: int | None = None
    removal_at: dt.datetime | None = None
    sight: Sight | None = None
    looks: int = 0
    look_at: dt.datetime | None = None
    opens: dt.datetime | None = None
    override: bool = False
    override_spent: bool = False
    serial: int = 0

    @property
    def full(self) -> int:
        """How many pods carry all traffic."""
        if self.replicas is not None:
            return max(1, self.replicas)
        seen = self.sight.primary if self.sight else None
        return max(1, seen.desired if seen else 1)

    @property
    def shown(self) -> bool:
        """Whether the proxies show the route we asked for last."""
        seen = self.sight.route if self.sight else None
        return (
            seen is not None
            and seen.order == self.route_order
            and seen.share == self.route.share
            and not seen.drift
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One version's way, with the rules it began with."""

    number: int
    target: Version
    why: str
    spec: Spec
    started: dt.datetime
    straight: bool = False
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
        """The rules as they bind: who goes straight goes alone, not with the group."""
        return dataclasses.replace(self.spec, group=None) if self.straight else self.spec

    @property
    def last(self) -> int:
        return len(self.plan) - 1


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What the checks of one place have told so far."""

    started: dt.datetime
    ticket: int = 0
    asked: dt.datetime | None = None
    """When the round that is not yet answered was asked for."""

    tallies: Mapping[str, Tally] = field(default_factory=dict)
    measured: Mapping[str, dt.datetime] = field(default_factory=dict)
    told: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unknown:
    """State: nothing was ever wanted."""


@dataclass(frozen=True, slots=True)
class Founding:
    """State: the first version is being made; nothing carries traffic yet."""

    book: Book


@dataclass(frozen=True, slots=True)
class Idle:
    """State: the stable version carries everything, and nothing else is under way."""

    book: Book


@dataclass(frozen=True, slots=True)
class Queued:
    """State: a run waits for room, for its window, for start checks or for a person."""

    book: Book
    run: Run
    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class Moving:
    """State: the canary is made ready for a step, then given its share."""

    book: Book
    run: Run
    step: int


@dataclass(frozen=True, slots=True)
class Watching:
    """State: the canary has its share; checks, times and people decide what follows."""

    book: Book
    run: Run
    step: int
    inquiry: Inquiry
    approved: bool = False


@dataclass(frozen=True, slots=True)
class Promoting:
    """State: the canary carries everything while the primary becomes the new version."""

    book: Book
    run: Run
    back: int = 0
    """How many of the promotion steps back to the primary were asked for."""

    stalled: str = ""


@dataclass(frozen=True, slots=True)
class GoingHome:
    """State: the canary is given up; its traffic goes to the stable version, then it leaves."""

    book: Book
    run: Run
    why: str
    ending: Ending
    stalled: str = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """State: the rollout was deleted."""

    book: Book


Running = Queued | Moving | Watching | Promoting | GoingHome
Known = Founding | Idle | Running
State = Unknown | Known | Gone
