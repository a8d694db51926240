"""A plan as a drawing: steps in columns by how many others come before, lines from left to right.

Pure. A step stays in the lane of what it waits for; a line that passes a column has a lane of its
own there, so that it leads through no step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairlead.areas.deployments.domain.plan.graph import Step

WIDTH, HEIGHT = 122, 46
_BESIDE, _BELOW = 22, 14
_EDGE = 2
_LETTERS = 16


@dataclass(frozen=True, slots=True)
class Node:
    """Where a step stands."""

    name: str
    label: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Line:
    """From a step to one that waits for it."""

    start: str
    end: str
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """All of a plan."""

    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Places:
    """Column and lane of each step, and the lanes that long lines take through columns."""

    columns: dict[str, int]
    lanes: dict[str, int]
    wires: dict[tuple[str, int], int]
    """By the step that the line begins at, and the column that it passes."""

    def lane(self, name: str, column: int) -> int:
        return self.wires.get((name, column), self.lanes[name])


def of(steps: Sequence[Step]) -> Drawing:
    places = _placed(steps, _columns(steps))
    nodes = tuple(_node(step.name, places) for step in steps)
    lines = tuple(
        Line(before, step.name, _path(before, step.name, places))
        for step in steps
        for before in step.depends_on
    )
    width = max((node.x for node in nodes), default=0) + WIDTH + _EDGE
    lowest = max((*places.lanes.values(), *places.wires.values()), default=0)
    return Drawing(nodes, lines, width, _top(lowest) + HEIGHT + _EDGE)


def _columns(steps: Iterable[Step]) -> dict[str, int]:
    """How many steps come before, on the longest way."""
    columns: dict[str, int] = {}
    left = list(steps)
    while left:
        placed = [step for step in left if all(each in columns for each in step.depends_on)]
        for step in placed:
            columns[step.name] = 1 + max((columns[each] for each in step.depends_on), default=-1)
        # A plan has no circles (`graph.check`), so in each round something is placed.
        assert placed, "a circle"
        left = [step for step in left if step.name not in columns]
    return columns


def _placed(steps: Sequence[Step], columns: dict[str, int]) -> _Places:
    places = _Places(columns, {}, {})
    reach = dict(columns)
    for step in steps:
        for each in step.depends_on:
            reach[each] = max(reach[each], columns[step.name])
    for column in range(max(columns.values(), default=-1) + 1):
        taken: set[int] = set()
        for step in steps:
            if columns[step.name] == column:
                lanes = (places.lane(each, column - 1) for each in step.depends_on)
                places.lanes[step.name] = _free(min(lanes, default=0), taken)
        for name, until in reach.items():
            if columns[name] < column < until:
                wanted = places.lane(name, column - 1)
                places.wires[name, column] = _free(wanted, taken)
    return places


def _free(lane: int, taken: set[int]) -> int:
    while lane in taken:
        lane += 1
    taken.add(lane)
    return lane


def _node(name: str, places: _Places) -> Node:
    label = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
    return Node(name, label, _left(places.columns[name]), _top(places.lanes[name]))


def _path(start: str, end: str, places: _Places) -> str:
    """Along a lane through each column, and over to the next one in the gap before it."""
    first, last = places.columns[start], places.columns[end]
    y = _middle(places.lanes[start])
    path = f"M{_left(first) + WIDTH} {y}"
    for column in range(first + 1, last + 1):
        lane = places.lanes[end] if column == last else places.wires[start, column]
        x, half = _left(column), _left(column) - _BESIDE // 2
        path += f"C{half} {y} {half} {_middle(lane)} {x} {_middle(lane)}"
        y = _middle(lane)
        if column < last:
            path += f"H{x + WIDTH}"
    return path


def _left(column: int) -> int:
    return column * (WIDTH + _BESIDE) + _EDGE


def _top(lane: int) -> int:
    return lane * (HEIGHT + _BELOW) + _EDGE


def _middle(lane: int) -> int:
    return _top(lane) + HEIGHT // 2
