"""What a step gives the template's parameters: images and counts, kept or new. Pure."""

from collections.abc import Iterator, Mapping

from fairlead import errors
from fairlead.areas.deployments.specs.naming import COUNT, IMAGE, PRIORITY, SCALED_FROM

Values = dict[str, str | None]
"""None: as it is."""

_GROUP = 1000


def created(wanted: Mapping[str, str], counts: str) -> Values:
    """For a new stack: at `zero`, the counts to go up to are remembered in the stack itself."""
    given: Values = dict(wanted)
    if counts == "zero":
        for count, remembered in _pairs(wanted):
            given |= {count: "0", remembered: wanted[count]}
    return given


def updated(wanted: Mapping[str, str], now: Mapping[str, str], images: str, counts: str) -> Values:
    """For a stack that has these values now."""
    given: Values = {}
    for name, new in wanted.items():
        there = name in now
        if name.startswith(IMAGE):
            given[name] = None if there and images == "kept" else new
        elif name.startswith(PRIORITY):
            # A rule that moves for no reason may meet another one: the same group is kept.
            given[name] = None if there and _group(now[name]) == _group(new) else new
        elif not name.startswith((COUNT, SCALED_FROM)):
            given[name] = new
    for count, remembered in _pairs(wanted):
        given |= _COUNTS[counts](wanted[count], now, count, remembered)
    return given


def scaled(now: Mapping[str, str], counts: str) -> Values | None:
    """To none, or back to what it was; None where nothing changes. Safe to be done twice."""
    given: Values = dict.fromkeys(now)
    for count, remembered in _pairs(now):
        if remembered not in now:
            raise errors.Rejected(
                f"the stack has no parameter to remember its count in: {remembered}",
                hint="deploy once with the flag infra_only, which brings it",
            )
        if counts == "zero":
            given |= {count: "0", remembered: now[remembered] or now[count]}
        elif now[remembered]:
            given |= {count: now[remembered], remembered: ""}
    return given if any(each is not None for each in given.values()) else None


def _pairs(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in sorted(names):
        if name.startswith(COUNT):
            yield name, f"{SCALED_FROM}{name.removeprefix(COUNT)}"


def _counted(new: str, now: Mapping[str, str], count: str, remembered: str) -> Values:
    """It runs in the end: as many as before, where any did."""
    before = now.get(remembered) or now.get(count, "0")
    return {count: before if before != "0" else new, remembered: ""}


def _kept(new: str, now: Mapping[str, str], count: str, remembered: str) -> Values:
    if count in now:
        # A template from before may lack the second one.
        return {count: None, remembered: None if remembered in now else ""}
    down = any(value for name, value in now.items() if name.startswith(SCALED_FROM))
    # A runtime that is new comes up with the others, not before them.
    return {count: "0", remembered: new} if down else {count: new, remembered: ""}


def _restored(new: str, now: Mapping[str, str], count: str, remembered: str) -> Values:
    if now.get(remembered):
        return {count: now[remembered], remembered: ""}
    return _kept(new, {count: now[count]} if count in now else {}, count, remembered)


_COUNTS = {"new": _counted, "kept": _kept, "restored": _restored}


def _group(priority: str) -> int:
    return int(priority) // _GROUP
