"""A rollout is called by the key of its stream: no command and no status gives it another name."""

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import coordination, messages, states, view
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.status import RolloutStatus
from tests.unit.areas.rollouts.domain.stories import SPEC, live
from tests.unit.areas.rollouts.domain.world import World, refused, version

OWN = coordination.rollout_stream("shop")


@pytest.mark.parametrize("name", ["other", "", "shop/..", "../../shop", "b/shop/uid"])
def test_a_request_under_another_name_is_refused(name: str) -> None:
    world = World()

    error = refused(world, messages.Request(name, SPEC, version("v1"), 2))

    assert error is not None
    assert error.message == f"shop is told to be another rollout: {name}"
    assert isinstance(world.state(), states.Unknown)


def test_the_memory_of_another_rollout_is_refused() -> None:
    told = live()
    status = view.status(told.state())
    world = World()

    error = refused(world, messages.Adopt(status), "other")

    assert error is not None
    assert error.message == "other is told to be another rollout: shop"
    assert isinstance(world.state("other"), states.Unknown)


@pytest.mark.parametrize(
    "memory", [{}, {"data": []}, {"data": {"rollout": {"name": 7}}}, {"data": {"rollout": "shop"}}]
)
def test_a_memory_without_a_name_is_refused_where_it_is_read(memory: dict[str, object]) -> None:
    ROLLOUT.addressed(OWN, messages.Adopt(RolloutStatus(memory=memory)))

    error = refused(World(), messages.Adopt(RolloutStatus(memory={"shape": 1, **memory})))

    assert isinstance(error, errors.Rejected)


def test_what_says_no_name_is_taken_by_any_stream() -> None:
    for command in (messages.Tick(), messages.Delete(), messages.Abort("ada")):
        ROLLOUT.addressed(OWN, command)
