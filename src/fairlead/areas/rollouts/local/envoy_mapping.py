"""From the desired state to words that the supervisor and Envoy understand."""

import re

from fairlead.areas.rollouts import rules
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.local.desired_state import DesiredState, Held
from fairlead.areas.rollouts.workloads import ProgramWords, file_name, named
from fairlead.clients import envoy
from fairlead.clients.processes import Health, Limits, Patience, Program
from fairlead.traffic.routes import How, Match, Route, Where
from fairlead.values import Percent

Ports = dict[Slot, tuple[int, ...]]


def cluster(slot: Slot, revision: str) -> str:
    """The name of a slot's version in Envoy, and so in its numbers."""
    return f"{slot.value}-{revision}"


def program_names(desired: DesiredState, slot: Slot) -> tuple[str, ...]:
    """The processes that the slot is to hold."""
    held = desired.slots.get(slot)
    if held is None:
        return ()
    stem = f"{file_name(desired.name)}.{cluster(slot, held.revision)}"
    return tuple(f"{stem}.{number}" for number in range(held.replicas))


def envoy_name(name: str) -> str:
    return f"{file_name(name)}.envoy"


def workload_of(program: str) -> str:
    """Whose process this is: a name of files holds no dot."""
    return named(program.partition(".")[0])


def slot_of(program: str) -> tuple[Slot, str] | None:
    """The slot and the revision of a process; None for an Envoy."""
    middle = program.split(".")[1]
    slot, _, revision = middle.partition("-")
    return (Slot(slot), revision) if revision else None


def program(name: str, words: ProgramWords) -> Program:
    limits = words.limits
    drain = rules.duration(words.drain, "program.drain").total_seconds()
    return Program(
        name,
        tuple(words.command),
        words.env,
        words.cwd,
        health=Health(words.health),
        limits=Limits(limits.memory_bytes, limits.open_files, limits.cpu_seconds),
        patience=Patience(drain_seconds=drain, longest_backoff_seconds=10.0),
    )


def table(desired: DesiredState, ports: Ports) -> envoy.Table | None:
    """What Envoy is to do; None as long as there is no route, or nobody to send a request to."""
    if desired.route is None or not ports.get(Slot.PRIMARY):
        return None
    route = desired.route
    wanted = {Slot.PRIMARY: True, Slot.CANARY: route.joined, Slot.BASELINE: route.compared}
    held = {
        slot: desired.slots[slot]
        for slot, joined in wanted.items()
        if joined and slot in desired.slots and ports.get(slot)
    }
    versions = tuple(_version(slot, each, ports) for slot, each in held.items())
    rules = _rules(route, held)
    return envoy.Table(versions, (envoy.Site(file_name(desired.name), rules),))


def _version(slot: Slot, held: Held, ports: Ports) -> envoy.Version:
    return envoy.Version(cluster(slot, held.revision), ports[slot])


def _rules(route: Route, held: dict[Slot, Held]) -> tuple[envoy.Rule, ...]:
    primary = cluster(Slot.PRIMARY, held[Slot.PRIMARY].revision)
    if Slot.CANARY not in held:
        return (envoy.Rule((envoy.Weight(primary, 100),)),)
    canary = cluster(Slot.CANARY, held[Slot.CANARY].revision)
    picked = tuple(
        envoy.Rule((envoy.Weight(canary, 100),), match=(_match(each),)) for each in route.matches
    )
    # The newcomer first: so whoever met it stays with it while its weight grows.
    weights = _weights(route, held)
    mirror = envoy.Mirror(canary, route.mirror) if route.mirror else None
    return (*picked, envoy.Rule(weights, mirror=mirror, affinity=_affinity(route)))


def _weights(route: Route, held: dict[Slot, Held]) -> tuple[envoy.Weight, ...]:
    split = route.split
    parts = {Slot.CANARY: split.canary, Slot.BASELINE: split.baseline, Slot.PRIMARY: split.primary}
    if Slot.BASELINE not in held:
        # One that has nobody to answer gives its weight to the primary, the same version.
        parts[Slot.PRIMARY] = Percent(split.primary + parts.pop(Slot.BASELINE))
    return tuple(
        envoy.Weight(cluster(slot, held[slot].revision), weight) for slot, weight in parts.items()
    )


def _affinity(route: Route) -> envoy.ByCookie | None:
    wanted = route.affinity
    return None if wanted is None else envoy.ByCookie(wanted.cookie, wanted.max_age)


def _match(match: Match) -> envoy.HeaderIs | envoy.CookieIs:
    value, regex = match.value, match.how is not How.EXACT
    if match.how is How.PREFIX:
        value = f"{re.escape(value)}.*"
    if match.where is Where.HEADER:
        return envoy.HeaderIs(match.name, value, regex=regex)
    return envoy.CookieIs(match.name, value, regex=regex)
