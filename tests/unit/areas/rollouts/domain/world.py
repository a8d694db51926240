"""A small world for rollouts: pods that take time, proxies that lag, messages that stray.

It stands for the engine (streams, outbox, timers), the platform, the router and the metrics at
once, on a clock of its own. It watches what users would notice, at every change: traffic to
nothing, a version taken away under its traffic, a backend forgotten with its last weight.
"""

import dataclasses
import datetime as dt
import functools
import heapq
import itertools
import random
from collections.abc import Callable
from typing import Any

from fairlead import errors
from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts.domain import coordination, messages, states
from fairlead.areas.rollouts.domain.group import GROUP
from fairlead.areas.rollouts.domain.limiter import LIMITER
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.observation import Observation, ObservedRoute, Pods
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.plan_step import PLAN_STEP
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.checks.spec import Finding
from fairlead.engine import codec
from fairlead.engine import machine as machines
from fairlead.engine.messages import CancelTimer, StreamName
from fairlead.traffic.routes import PRIMARY_ONLY, Route

START = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
MACHINES = machines.Machines([ROLLOUT, LIMITER, GROUP, PLAN_STEP])
CODECS = {each.name: codec.Codec(each) for each in MACHINES}
GOOD = Phase.SUCCESSFUL
BAD = Phase.FAILED


def version(name: str) -> Version:
    return Version(name, f"t1-{name}", "", name)


@dataclasses.dataclass
class Habits:
    """How the world behaves; chances are per message or second."""

    ready_after: float = 3
    lag: float = 0.5
    broken: frozenset[str] = frozenset()
    """Revisions whose pods never get ready."""

    verdicts: dict[str, Phase | None] = dataclasses.field(default_factory=dict)
    """What checks say of a revision; GOOD where nothing is said."""

    fail: float = 0
    """An effect fails and is tried again a second later."""

    vanish: float = 0
    """An effect is given up by the outbox."""

    twice: float = 0
    """An answer or an effect comes twice, late."""

    stale: float = 0
    """An observation arrives long after it was made."""

    crash: float = 0
    """All pods of a slot lose their readiness, per observation."""

    deaf: bool = False
    """Nobody pushes observations; only looks are answered."""

    terse: bool = False
    """What looks as before is not pushed again, as a door does it."""

    until: dt.datetime = START + dt.timedelta(hours=1)
    """From then on nothing goes wrong any more."""


@dataclasses.dataclass
class Side:
    """One slot."""

    version: Version
    ready_at: list[dt.datetime]


class World:
    """One rollout or several, with all that is around them."""

    def __init__(self, habits: Habits | None = None, seed: int = 0) -> None:
        self.habits = habits or Habits()
        self.chance = random.Random(seed)
        self.now = START
        self.streams: dict[str, Any] = {}
        self.events: dict[str, list[Any]] = {}
        self.effects: list[messages.Effect] = []
        self.timers: dict[str, tuple[dt.datetime, object]] = {}
        self.places: dict[str, Place] = {}
        self._pushed: dict[str, Observation] = {}
        self._queue: list[tuple[dt.datetime, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def place(self, name: str) -> "Place":
        return self.places.setdefault(name, Place(self))

    def state(self, name: str = "shop") -> Any:
        return self.streams.get(coordination.rollout_stream(name), states.Unknown())

    def told(self, name: str = "shop") -> list[Any]:
        return self.events.get(coordination.rollout_stream(name), [])

    def want(self, name_of_version: str, spec: Spec, name: str = "shop", **more: Any) -> None:
        more = {"replicas": 3} | more
        self.send(messages.Request(name, spec, version(name_of_version), **more), name)

    def send(self, command: object, name: str = "shop") -> None:
        self.submit(coordination.rollout_stream(name), command)

    def submit(self, stream: str, command: object) -> None:
        """One transaction: the command, and what machines send each other because of it."""
        queue = [(stream, command)]
        while queue:
            target, said = queue.pop(0)
            queue += self._decide(target, said)

    def _decide(self, stream: str, command: object) -> list[tuple[str, object]]:
        machine, words = MACHINES.of(stream), CODECS[stream.partition("/")[0]]
        state = self.streams.get(stream, machine.initial)
        machine.addressed(StreamName(stream), command)
        decision = machine.decide(state, command, self.now)
        assert decision.events or not decision, decision
        for event in decision.events:
            state = machine.evolve(state, event)
            words.events.encode(event)
        # What is kept is what comes back: through the codec, as the store does it.
        self.streams[stream] = words.states.decode(words.states.encode(state))
        assert self.streams[stream] == state
        self.events.setdefault(stream, []).extend(decision.events)
        for timer in decision.timers:
            if isinstance(timer, CancelTimer):
                self.timers.pop(stream, None)
            else:
                self.timers[stream] = (timer.due, timer.command)
        for effect in decision.effects:
            kept: messages.Effect = words.effects.decode(words.effects.encode(effect))
            self.effects.append(kept)
            self._later(0.05, functools.partial(self._perform, stream, kept))
        return [(send.stream, send.command) for send in decision.sends]

    def forget(self, name: str = "shop") -> RolloutStatus:
        """The store is lost, with outbox and timers; the status is all that is left."""
        stream = coordination.rollout_stream(name)
        del self.streams[stream]
        self.timers.pop(stream, None)
        self._queue = []
        published = (
            each.status
            for each in self.effects
            if isinstance(each, messages.PublishStatus) and each.name == name
        )
        return max(published, key=lambda each: each.round)

    def run(self, until: Callable[[], bool] | None = None, *, longest: float = 7200) -> bool:
        """Let time pass until the condition holds, or nothing is left to happen."""
        end = self.now + longest * SECOND
        while until is None or not until():
            moments = [due for due, _ in self.timers.values()]
            moments += [self._queue[0][0]] if self._queue else []
            following = min(moments, default=end)
            if following >= end:
                self.now = end
                return until is None
            self.now = max(self.now, following)
            self._step()
        return True

    def run_until(self, kind: type, name: str = "shop", *, longest: float = 7200) -> Any:
        done = self.run(lambda: isinstance(self.state(name), kind), longest=longest)
        assert done, (self.state(name), self.told(name)[-5:])
        return self.state(name)

    def _step(self) -> None:
        for stream, (due, command) in list(self.timers.items()):
            if due <= self.now:
                del self.timers[stream]
                self.submit(stream, command)
                return
        if self._queue and self._queue[0][0] <= self.now:
            heapq.heappop(self._queue)[2]()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        entry = (self.now + seconds * SECOND, next(self._count), action)
        heapq.heappush(self._queue, entry)

    def _chances(self, chance: float) -> bool:
        return self.now < self.habits.until and self.chance.random() < chance

    def _perform(self, stream: str, effect: messages.Effect) -> None:
        if self._chances(self.habits.vanish):
            return
        if self._chances(self.habits.fail):
            self._later(self.chance.uniform(0.5, 20), lambda: self._perform(stream, effect))
            return
        if self._chances(self.habits.twice):
            self._later(self.chance.uniform(1, 60), lambda: self._perform(stream, effect))
        match effect:
            case messages.EnsureVersion() | messages.SetRoute() | messages.RemoveCanary():
                self.place(effect.name).write(effect)
                self._tell_soon(effect.name)
            case messages.Observe():
                self.observe(effect.name)
            case messages.Measure():
                self._judge(stream, effect)
            case _:
                # Status, news and flags change nothing that a rollout sees.
                pass

    def _tell_soon(self, name: str) -> None:
        if not self.habits.deaf:
            for delay in (0.1, self.habits.lag + 0.1, self.habits.ready_after + 1):
                self._later(delay, lambda: self._push(name))

    def _push(self, name: str) -> None:
        seen = self.place(name).observed()
        if self.habits.terse and seen.same_as(self._pushed.get(name)):
            return
        self._pushed[name] = seen
        self.observe(name)

    def observe(self, name: str = "shop") -> None:
        place = self.place(name)
        if self._chances(self.habits.crash):
            place.crash(self.chance.choice(list(Slot)))
        seen = messages.Observed(place.observed())
        if self._chances(self.habits.stale):
            self._later(self.chance.uniform(1, 90), lambda: self.send(seen, name))
        else:
            self.send(seen, name)

    def _judge(self, stream: str, effect: messages.Measure) -> None:
        phase = self.habits.verdicts.get(effect.canary.revision, GOOD)
        findings = tuple(
            Finding(check.name, phase, f"the numbers of {effect.canary} are {phase}")
            for check in effect.checks
        )
        self._later(0.2, lambda: self.submit(stream, messages.Judged(effect.ticket, findings)))


class Place:
    """What runs for one rollout: its slots and the proxies before them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.slots: dict[Slot, Side | None] = dict.fromkeys(Slot)
        self.orders: dict[object, int] = {}
        self.routes: list[tuple[dt.datetime, int, Route]] = []
        self.hurt: list[str] = []
        """What users would have noticed though nothing was broken."""

    @property
    def route(self) -> tuple[int, Route]:
        """What the proxies show now."""
        past = [(order, route) for at, order, route in self.routes if at <= self.world.now]
        return past[-1] if past else (0, PRIMARY_ONLY)

    def ready(self, slot: Slot, lag: float = 0) -> int:
        side = self.slots[slot]
        now = self.world.now - lag * SECOND
        return sum(at <= now for at in side.ready_at) if side else 0

    def carries(self, slot: Slot) -> bool:
        """Whether requests go there, as the proxies see it or soon will."""
        shown = [self.route[1]] + [route for at, _, route in self.routes if at > self.world.now]
        if slot is Slot.CANARY:
            return any(route.weight or route.matches for route in shown)
        if slot is Slot.BASELINE:
            return any(route.split.baseline for route in shown)
        return any(route.split.primary for route in shown) and bool(self.routes)

    def observed(self) -> Observation:
        order, route = self.route
        shown = ObservedRoute(order, route.weight) if order else None
        return Observation(self.world.now, self._pods(Slot.PRIMARY),
                     self._pods(Slot.CANARY), shown,
                     self._pods(Slot.BASELINE))  # fmt: skip

    def write(
        self, effect: messages.EnsureVersion | messages.SetRoute | messages.RemoveCanary
    ) -> None:
        match effect:
            case messages.EnsureVersion():
                self.ensure(effect)
            case messages.SetRoute():
                self.set_route(effect)
            case messages.RemoveCanary():
                self.remove(effect)

    def ensure(self, effect: messages.EnsureVersion) -> None:
        if not self._newest(effect.slot, effect.order):
            return
        side = self.slots[effect.slot]
        grown = max(len(side.ready_at) if side else 0, effect.at_least)
        count = grown if effect.replicas is None else effect.replicas
        if side is None or side.version != effect.version:
            if side is not None and self.carries(effect.slot):
                self.hurt.append(f"{effect.slot.value} replaced under traffic")
            side = self.slots[effect.slot] = Side(effect.version, [])
        # Who asks for 0 between runs means all of it.
        asleep = not count and not self.carries(Slot.CANARY)
        if count < len(side.ready_at) and self.carries(effect.slot) and not asleep:
            self.hurt.append(f"{effect.slot.value} made smaller under traffic")
        del side.ready_at[count:]
        while len(side.ready_at) < count:
            side.ready_at.append(self._ready_at(effect.version))

    def remove(self, effect: messages.RemoveCanary) -> None:
        for slot in (Slot.CANARY, Slot.BASELINE):
            if not self._newest(slot, effect.order):
                continue
            if self.carries(slot):
                self.hurt.append(f"{slot.value} removed under traffic")
            if self.holds(self.route[1], slot) and self.slots[slot]:
                self.hurt.append(f"{slot.value} removed while the proxies hold it")
            self.slots[slot] = None

    @staticmethod
    def holds(route: Route, slot: Slot) -> bool:
        return route.compared if slot is Slot.BASELINE else route.joined

    def set_route(self, effect: messages.SetRoute) -> None:
        if not self._newest("route", effect.order):
            return
        before = self.routes[-1][2] if self.routes else PRIMARY_ONLY
        self._watch_newcomers(before, effect.route)
        if before.joined != effect.route.joined and (before.weight or effect.route.weight):
            self.hurt.append("joined or left with weight")
        if effect.route.reaches_canary and not self.ready(Slot.CANARY):
            self.hurt.append("weight to a canary without a ready pod")
        if effect.route.weight < before.weight and not self.ready(Slot.PRIMARY):
            self.hurt.append("weight to a primary without a ready pod")
        lag = self.world.habits.lag
        self.routes.append((self.world.now + lag * SECOND, effect.order, effect.route))

    def _watch_newcomers(self, before: Route, after: Route) -> None:
        weighted = before.split.baseline or after.split.baseline
        if before.compared != after.compared and weighted:
            self.hurt.append("a baseline joined or left with weight")
        for slot in (Slot.CANARY, Slot.BASELINE):
            joins = self.holds(after, slot) and not self.holds(before, slot)
            if joins and not self.ready(slot):
                self.hurt.append(f"a {slot.value} joined without a ready pod")
            rose = getattr(after.split, slot.value) > getattr(before.split, slot.value)
            if rose and not self.known(slot):
                self.hurt.append(f"weight to a {slot.value} the mesh does not know")
        if after.weight > before.weight and after.split.primary > before.split.primary:
            self.hurt.append("more weight to the primary on the way up")

    def crash(self, slot: Slot) -> None:
        side = self.slots[slot]
        if side is not None:
            side.ready_at = [self._ready_at(side.version) for _ in side.ready_at]

    def known(self, slot: Slot) -> int:
        primary = slot is Slot.PRIMARY
        held = bool(self.routes) if primary else self.holds(self.route[1], slot)
        return self.ready(slot, self.world.habits.lag) if held else 0

    def healthy(self) -> bool:
        """Whether every request now meets a ready pod."""
        split = self.route[1].split
        needs = zip(Slot, (split.primary, split.canary, split.baseline), strict=True)
        return all(self.ready(slot) > 0 for slot, needed in needs if needed)

    def _pods(self, slot: Slot) -> Pods | None:
        side = self.slots[slot]
        if side is None:
            return None
        revision, size = side.version.revision, len(side.ready_at)
        order = self.orders.get(slot, 0)
        return Pods(revision, size, self.ready(slot), self.known(slot), order)

    def _ready_at(self, version: Version) -> dt.datetime:
        if version.revision in self.world.habits.broken:
            return dt.datetime.max.replace(tzinfo=dt.UTC)
        return self.world.now + self.world.habits.ready_after * SECOND

    def _newest(self, part: object, order: int) -> bool:
        if order < self.orders.get(part, 0):
            return False
        self.orders[part] = order
        return True


def refused(world: World, command: object, name: str = "shop") -> errors.Rejected | None:
    """The refusal of a command, if it is one."""
    try:
        world.send(command, name)
    except errors.Rejected as error:
        return error
    return None
