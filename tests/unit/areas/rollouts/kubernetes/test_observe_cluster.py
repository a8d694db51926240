"""What is seen of a rollout: pods counted from below, endpoints when proxies had time for them."""

from datetime import timedelta

import pytest

from fairlead.areas.rollouts.domain.observation import ObservedRoute
from fairlead.areas.rollouts.domain.plan.spec import Version
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import children, names, observe_cluster, parsing, wiring
from tests.unit.areas.rollouts.kubernetes.snapshot import (
    NOW,
    FakeSnapshot,
    Json,
    canary,
    deployment,
)

V1 = Version("r1", "t1-1", label="shop:1")


def held(**status: int) -> Json:
    obj = deployment("shop-deployment", **status)
    obj["metadata"]["annotations"] = {**children.marks(V1, 4), names.SINCE: "2"}
    return obj


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, 3),
        ({"replicas": 4, "updatedReplicas": 2, "readyReplicas": 3}, 1),
        ({"replicas": 4, "updatedReplicas": 1, "readyReplicas": 3}, 0),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, 3),
        ({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3}, 0),
        ({}, 0),
    ],
    ids=["whole", "half", "too few", "scaled", "of an older version", "new"],
)
def test_pods_of_a_version_are_counted_from_below(status: dict[str, int], ready: int) -> None:
    assert observe_cluster.ready_pods(held(**status)) == ready


def test_a_held_target_is_what_it_was_when_it_was_held() -> None:
    obj = held(replicas=3, updatedReplicas=0, readyReplicas=2)
    obj["spec"]["paused"] = True

    assert observe_cluster.ready_pods(obj) == 2


def slice_(age: float, *ready: bool) -> Json:
    told = (NOW - timedelta(seconds=age)).isoformat()
    meta: Json = {"name": "s", "labels": {"kubernetes.io/service-name": "shop-service"}}
    meta["annotations"] = {"endpoints.kubernetes.io/last-change-trigger-time": told}
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": one}} for one in ready]
    return observe_cluster.kept_slice({"metadata": meta, "endpoints": endpoints})


def test_endpoints_count_once_the_proxies_had_time_to_learn_of_them() -> None:
    found = parsing.read(canary())
    pods = held(replicas=3, updatedReplicas=3, readyReplicas=3)
    slices = [slice_(60, True, True, False), slice_(0.5, True)]
    snapshot = FakeSnapshot(
        {("Deployment", "shop-deployment"): [pods], ("EndpointSlice", "shop-service"): slices}
    )

    seen = wiring.canaries().see(found, snapshot)

    assert seen.observed.primary is not None
    assert (seen.observed.primary.ready, seen.observed.primary.known) == (3, 2)
    assert seen.again == pytest.approx(1.5)
    assert seen.observed.at == NOW


@pytest.mark.parametrize(
    ("triggered", "written", "after"),
    [
        # The annotation is gone, as where the controller does not know the time.
        (None, 0.0, 3.0),
        # Whole seconds: it may have been written up to a second later.
        (0.0, 60.0, 3.0),
        (60.0, 1.0, 2.0),
        (0.5, 60.0, 1.5),
        ("never", 60.0, 0.0),
    ],
    ids=["no annotation", "a whole second", "written later", "with parts", "unreadable"],
)
def test_the_newest_time_of_endpoints_counts_on_the_safe_side(
    triggered: float | str | None, written: float, after: float
) -> None:
    def before(seconds: float) -> str:
        return (NOW - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    meta: Json = {"name": "s", "labels": {"kubernetes.io/service-name": "shop-service"}}
    meta["creationTimestamp"] = before(90)
    meta["managedFields"] = [{"time": before(120)}, {"time": before(written)}]
    if triggered is not None:
        told = triggered if isinstance(triggered, str) else before(triggered)
        meta["annotations"] = {"endpoints.kubernetes.io/last-change-trigger-time": told}
    one = observe_cluster.kept_slice({"metadata": meta, "endpoints": [{"addresses": ["10.0.0.1"]}]})
    pods = held(replicas=3, updatedReplicas=3, readyReplicas=3)
    snapshot = FakeSnapshot(
        {("Deployment", "shop-deployment"): [pods], ("EndpointSlice", "shop-service"): [one]}
    )

    seen = wiring.canaries().see(parsing.read(canary()), snapshot)

    assert seen.again == pytest.approx(after)
    assert seen.observed.primary is not None
    assert seen.observed.primary.known == (0 if after else 1)


def test_a_deployment_that_was_never_asked_for_anything_is_no_slot() -> None:
    found = parsing.read(canary())
    snapshot = FakeSnapshot({("Deployment", "shop-deployment"): [deployment()]})

    assert wiring.canaries().see(found, snapshot).observed.primary is None


def test_orders_that_left_no_trace_are_seen_too() -> None:
    canaries = wiring.canaries()
    found = parsing.read(canary())
    snapshot = FakeSnapshot({("Deployment", "shop-deployment"): [held()]})
    canaries.orders.perform("u1", Slot.PRIMARY.value, 9)

    pods = canaries.see(found, snapshot).observed.primary

    assert pods is not None
    assert pods.order == 9


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (ObservedRoute(3, 0), ObservedRoute(5, 0)),
        (ObservedRoute(3, 10), ObservedRoute(3, 10)),
        (ObservedRoute(3, 0, "changed"), ObservedRoute(3, 0, "changed")),
        (ObservedRoute(7, 0), ObservedRoute(7, 0)),
        (ObservedRoute(0, 0), ObservedRoute(0, 0)),
        (None, None),
    ],
)
def test_a_standby_without_a_write_is_shown_at_weight_0_only(
    shown: ObservedRoute | None, seen: ObservedRoute | None
) -> None:
    assert observe_cluster.standing_by(shown, 5) == seen


def test_of_a_secret_nothing_is_kept_but_a_digest() -> None:
    secret = {"metadata": {"name": "keys", "labels": {"a": "b"}}, "data": {"token": "c2VjcmV0"}}

    kept = observe_cluster.kept_secret(secret)

    assert "c2VjcmV0" not in str(kept)
    assert "token" not in str(kept)
    assert kept != observe_cluster.kept_secret({**secret, "data": {"token": "b3RoZXI="}})


def test_the_digest_of_a_secret_cannot_be_guessed_from_what_may_be_in_it() -> None:
    secret = {"metadata": {"name": "keys", "uid": "5e2f"}, "data": {"pin": "MTIzNA=="}}
    told = observe_cluster.kept_secret(secret)["data"]["digest"]

    guesses = [
        observe_cluster.kept_config(secret),
        observe_cluster.kept_secret({"data": secret["data"]}),
        observe_cluster.kept_secret({**secret, "metadata": {"name": "keys", "uid": "5e30"}}),
    ]

    assert told not in [guess["data"]["digest"] for guess in guesses]
    labelled = {**secret, "metadata": {"name": "keys", "uid": "5e2f", "labels": {"a": "b"}}}
    assert observe_cluster.kept_secret(labelled)["data"]["digest"] == told
