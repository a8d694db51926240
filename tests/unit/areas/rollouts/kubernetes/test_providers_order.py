"""What loses requests on a real mesh, and that our writes never come in that order.

Each test is one line of the losses that were measured on istiod and Envoy Gateway: what was done
there, and what we do instead, by the machine and a provider together.
"""

import datetime as dt
import itertools

import pytest

from fairlead.areas.rollouts.domain import events, states
from fairlead.areas.rollouts.kubernetes.routing.provider import Apply, Provider
from tests.unit.areas.rollouts.domain.stories import SPEC
from tests.unit.areas.rollouts.domain.world import BAD, Habits
from tests.unit.areas.rollouts.kubernetes.proxies import PROVIDERS, Mesh, Moment, world


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> Provider:
    return PROVIDERS[request.param]


@pytest.fixture(params=["good", "bad"])
def mesh(request: pytest.FixtureRequest, provider: Provider) -> Mesh:
    """After a whole canary, promoted or rolled back."""
    verdicts = {"v2": BAD} if request.param == "bad" else {}
    return walked(provider, Habits(verdicts=dict(verdicts)))


def walked(provider: Provider, habits: Habits) -> Mesh:
    made, mesh = world(provider, habits)
    made.want("v1", SPEC)
    made.run_until(states.Idle)
    made.want("v2", SPEC)
    made.run(lambda: made.state().rollout.outcome is not None)
    good = "v2" not in habits.verdicts and "v2" not in habits.broken
    ending = events.Ending.PROMOTED if good else events.Ending.ROLLED_BACK
    assert made.state().rollout.outcome.ending is ending
    return mesh


def first(mesh: Mesh, what: str, *, weight: int | None = None) -> Moment:
    return next(one for one in mesh.done if one.what == what and weight in (None, one.weight))


def test_nothing_that_users_would_notice_happens(mesh: Mesh) -> None:
    assert mesh.hurt == []


def test_a_route_is_never_deleted_and_made_again(mesh: Mesh) -> None:
    assert mesh.removed == []
    assert all(obj["metadata"]["generation"] > 1 for obj in mesh.server.found.values())


def test_weight_comes_a_delay_after_the_canary_joined_and_its_pods_were_ready(mesh: Mesh) -> None:
    made = first(mesh, "ensure canary")
    joined = next(one for one in mesh.done if one.joined)
    weight = next(one for one in mesh.done if one.weight > 0)
    delay = dt.timedelta(seconds=mesh.delay)

    assert joined.weight == 0
    assert joined.at >= made.at + dt.timedelta(seconds=mesh.world.habits.ready_after)
    assert weight.at >= joined.at + delay


def test_the_canary_is_removed_two_shown_writes_after_its_weight(mesh: Mesh) -> None:
    removed = first(mesh, "remove")
    before = [one for one in mesh.done if one.what == "route" and one.at <= removed.at]
    taken, left = before[-2:]
    delay = dt.timedelta(seconds=mesh.delay)

    assert (taken.weight, taken.joined) == (0, True)
    assert (left.weight, left.joined) == (0, False)
    assert left.at >= taken.at + delay
    assert removed.at >= left.at + delay


def test_a_canary_that_never_gets_ready_never_joins(provider: Provider) -> None:
    mesh = walked(provider, Habits(broken=frozenset({"v2"})))

    assert mesh.hurt == []
    assert not any(one.joined or one.weight > 0 for one in mesh.done)


def test_no_weight_goes_to_or_from_0_together_with_the_backend(mesh: Mesh) -> None:
    routes = [one for one in mesh.done if one.what == "route"]

    for one, following in itertools.pairwise(routes):
        if one.joined != following.joined:
            assert (one.weight, following.weight) == (0, 0)


def test_on_gateway_api_both_backends_are_held_while_any_weight_changes() -> None:
    mesh = walked(PROVIDERS["gateway"], Habits())
    held = [
        [one["name"] for rule in write.object["spec"]["rules"] for one in rule["backendRefs"]]
        for write in mesh.applied("shop-fairlead")
    ]
    order = [
        write.object["metadata"]["name"]
        for write in mesh.server.written
        if isinstance(write, Apply)
    ]

    # Once with the join, once with the leave, and each time before the route itself.
    assert held == [["shop"], ["shop", "shop-canary"], ["shop"]]
    at = [n for n, name in enumerate(order) if name == "shop-fairlead"]
    assert all(order[n + 1] == "shop" for n in at)
    weights = mesh.applied("shop")
    assert [len(one.object["spec"]["rules"][0]["backendRefs"]) for one in weights] == [
        1, 2, 2, 2, 2, 2, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("lag", [0.05, 0.5, 0.9])
def test_a_mesh_slower_than_measured_is_still_waited_for(provider: Provider, lag: float) -> None:
    mesh = walked(provider, Habits(lag=lag))

    assert mesh.hurt == []
