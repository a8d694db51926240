"""What the places of an area must hold, and how it is loaded from there.

What only an operator or only a web server needs is in `operator_part` and `web_part`: no other
process carries their weight.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

from fairlead import errors, loading
from fairlead import settings as settings_
from fairlead.area import Area
from fairlead.console.nouns import Noun
from fairlead.engine import machine as machine_
from fairlead.engine import messages, outbox, service
from fairlead.engine import projections as projections_
from fairlead.web.services import Services

Background = Callable[[service.Engine], AbstractAsyncContextManager[None]]
"""Runs in the same process while effects are performed."""


@dataclass(frozen=True, slots=True)
class StepKind:
    """A step that a plan may have: it starts a machine, whose end is heard as `ChildEnded`."""

    name: str
    start: Callable[[messages.StreamName, str, Mapping[str, object]], messages.Send]
    """From the parent's stream, a key that no other try has, and the step's own words to the
    command that starts the child; Rejected where the words make no sense. Pure."""

    machine: str
    """The machine that it starts; it must know `messages.Cancel`, as a plan may be cancelled."""


Parent = Callable[[Mapping[str, StepKind]], machine_.AnyMachine]
"""Makes a machine that walks plans, of the step kinds of all areas by their names."""


@dataclass(frozen=True, slots=True)
class Core:
    """What every process on a store must know of an area."""

    machines: Sequence[machine_.AnyMachine] = ()
    projections: Sequence[projections_.Projection] = ()
    steps: Sequence[StepKind] = ()
    parents: Sequence[Parent] = ()


@dataclass(frozen=True, slots=True)
class Platform:
    """What an area runs on this machine beside the engine."""

    queues: outbox.QueueHandlers = field(default_factory=dict)
    """Who performs its effects, by queue; one of this machine alone is taken by no other."""

    background: Background | None = None
    services: Services = field(default_factory=Services)
    """What its pages need of the running process."""


def core(area: Area) -> Core:
    return loading.make(area.core, Core)


def machines(cores: Sequence[Core]) -> list[machine_.AnyMachine]:
    """Those of all areas; one that walks plans can start the steps of each."""
    kinds = step_kinds(cores)
    made = [make(kinds) for core in cores for make in core.parents]
    return [*(each for core in cores for each in core.machines), *made]


def step_kinds(cores: Iterable[Core]) -> Mapping[str, StepKind]:
    """Every step that a plan may have, by its name; no two areas may have the same."""
    found: dict[str, StepKind] = {}
    for step in (each for core in cores for each in core.steps):
        if step.name in found:
            raise errors.Conflict(f"two step kinds of one name: {step.name}", hint="rename one")
        found[step.name] = step
    return found


def platform(area: Area, chosen: settings_.Settings) -> Platform | None:
    """None where the area runs nothing here, or cannot."""
    if not area.platform:
        return None
    made = loading.make(area.platform, object, chosen)
    assert made is None or isinstance(made, Platform), f"no platform at {area.platform}"
    return made


def settings_group(area: Area) -> type | None:
    return loading.load(area.settings, type) if area.settings else None


def noun(areas: Iterable[Area], word: str) -> Noun | None:
    """What the word means, in whichever area has it."""
    place = next((area.nouns[word] for area in areas if word in area.nouns), None)
    return None if place is None else loading.load(place, Noun)
