"""Plans as drawings: every step has its place, and no line leads through one."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as some

from fairlead.areas.deployments import drawing
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.plan.build import build
from fairlead.areas.deployments.domain.plan.graph import Step
from fairlead.areas.deployments.domain.plan.steps import Observation
from tests.unit.areas.deployments.domain.samples import TWO


def test_nothing_is_drawn_as_nothing() -> None:
    assert drawing.of(()) == drawing.Drawing((), (), drawing.WIDTH + 2, drawing.HEIGHT + 4)


def test_a_chain_is_one_lane_and_what_runs_beside_it_another() -> None:
    steps = (
        Step("a", "K"),
        Step("b", "K", ("a",)),
        Step("c", "K", ("a",)),
        Step("d", "K", ("b", "c")),
    )

    drawn = {node.name: node for node in drawing.of(steps).nodes}

    assert drawn["a"].y == drawn["b"].y == drawn["d"].y < drawn["c"].y
    assert drawn["a"].x < drawn["b"].x == drawn["c"].x < drawn["d"].x


def test_a_long_name_is_cut_and_kept_whole_beside() -> None:
    (node,) = drawing.of((Step("PGMigrate.orders-of-the-shop", "K"),)).nodes

    assert (len(node.label), node.name) == (16, "PGMigrate.orders-of-the-shop")


def test_every_branch_of_a_real_plan_has_room() -> None:
    plan = build(TWO, Observation(exists=True))

    for impact in Impact:
        steps = (*plan.steps, *plan.branch(impact))
        drawn = drawing.of(steps)

        assert len({(node.x, node.y) for node in drawn.nodes}) == len(steps)
        assert len(drawn.lines) == sum(len(step.depends_on) for step in steps)


@given(some.lists(some.sets(some.integers(0, 30), max_size=4), max_size=30))
def test_no_line_passes_through_a_step(waits: list[set[int]]) -> None:
    steps = [
        Step(str(n), "K", tuple(str(each) for each in sorted(before) if each < n))
        for n, before in enumerate(waits)
    ]

    drawn = drawing.of(steps)

    nodes = {node.name: node for node in drawn.nodes}
    for one, other in itertools.combinations(drawn.nodes, 2):
        assert (one.x, one.y) != (other.x, other.y)
    taken = {(node.x, node.y + drawing.HEIGHT // 2) for node in drawn.nodes}
    for line in drawn.lines:
        assert nodes[line.start].x < nodes[line.end].x
        passed = re.findall(r"(\d+) (\d+)H", line.path)
        assert not {(int(x), int(y)) for x, y in passed} & taken, line
        assert max([0, *(int(y) for _, y in passed)]) < drawn.height
