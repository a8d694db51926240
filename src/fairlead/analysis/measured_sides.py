"""Counts with requests, and histograms, as a document writes them."""

from typing import NoReturn

from fairlead.analysis.samples import Counted, Histogram

MOST_EDGES = 200
MOST_COUNT = 2**53
KINDS = (("events", "requests"), ("failures", "requests"), ("edges", "counts"))


def read(given: object, most: int) -> Counted | Histogram:
    """What was counted, or ValueError with what is wrong."""
    if isinstance(given, Counted | Histogram):
        return given
    if not isinstance(given, dict) or tuple(sorted(given)) not in map(_sorted, KINDS):
        shapes = ", ".join(f"{one} and {other}" for one, other in KINDS)
        _wrong(f"a list of samples, or an object with {shapes} is needed")
    lists = {name: _list(name, values, most) for name, values in given.items()}
    if "edges" in lists:
        return _histogram(lists["edges"], lists["counts"])
    events = lists.get("events", lists.get("failures", []))
    return _counted(events, lists["requests"], of_failures="failures" in lists)


def _counted(events: list[object], requests: list[object], *, of_failures: bool) -> Counted:
    if len(events) != len(requests):
        _wrong(f"{len(events)} moments with events, but {len(requests)} with requests")
    made = Counted(_counts(events), _counts(requests), of_failures)
    for moment, (some, of) in enumerate(zip(made.events, made.requests, strict=True)):
        if some > of:
            _wrong(f"more events than requests at moment {moment}: {some} of {of}")
    return made


def _histogram(edges: list[object], counts: list[object]) -> Histogram:
    made = tuple(_number(edge) for edge in edges)
    if not 0 < len(made) <= MOST_EDGES or list(made) != sorted(set(made)):
        _wrong(f"1 to {MOST_EDGES} edges in rising order are needed")
    rows = []
    for moment, row in enumerate(counts):
        if not isinstance(row, list) or len(row) != len(made) + 1:
            _wrong(f"moment {moment} needs one count more than there are edges")
        rows.append(_counts(row))
    return Histogram(made, tuple(rows))


def _counts(values: list[object]) -> tuple[int, ...]:
    return tuple(0 if value is None else _count(value) for value in values)


def _count(value: object) -> int:
    number = _number(value)
    if not 0 <= number <= MOST_COUNT or not number.is_integer():
        _wrong(f"{value!r} is no count")
    return int(number)


def _number(value: object) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not abs(value) < float("inf")
    ):
        _wrong(f"{value!r} is no number")
    return float(value)


def _list(name: str, values: object, most: int) -> list[object]:
    if not isinstance(values, list):
        _wrong(f"{name} is no list")
    if len(values) > most:
        _wrong(f"more than {most} moments in {name}")
    return values


def _sorted(names: tuple[str, str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _wrong(problem: str) -> NoReturn:
    raise ValueError(problem)
