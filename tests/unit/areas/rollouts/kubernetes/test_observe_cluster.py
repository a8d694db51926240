"""What is seen of a rollout: pods counted from below, endpoints when proxies had time for them."""

from datetime import timedelta

import pytest

from fairlead.adapters.canaries import children, names, reading, seeing, wiring
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.sight import Shown
from fairlead.domain.rollouts.spec import Version
from tests.unit.adapters.canaries.around import NOW, Around, Json, canary, deployment

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
    assert seeing.ready_pods(held(**status)) == ready


def test_a_held_target_is_what_it_was_when_it_was_held() -> None:
    obj = held(replicas=3, updatedReplicas=0, readyReplicas=2)
    obj["spec"]["paused"] = True

    assert seeing.ready_pods(obj) == 2


def slice_(age: float, *ready: bool) -> Json:
    told = (NOW - timedelta(seconds=age)).isoformat()
    meta: Json = {"name": "s", "labels": {"kubernetes.io/service-name": "shop-service"}}
    meta["annotations"] = {"endpoints.kubernetes.io/last-change-trigger-time": told}
    endpoints = [{"addresses": ["10.0.0.1"], "conditions": {"ready": one}} for one in ready]
    return seeing.kept_slice({"metadata": meta, "endpoints": endpoints})


def test_endpoints_count_once_the_proxies_had_time_to_learn_of_them() -> None:
    found = reading.read(canary())
    pods = held(replicas=3, updatedReplicas=3, readyReplicas=3)
    slices = [slice_(60, True, True, False), slice_(0.5, True)]
    around = Around(
        {("Deployment", "shop-deployment"): [pods], ("EndpointSlice", "shop-service"): slices}
    )

    seen = wiring.canaries().see(found, around)

    assert seen.sight.primary is not None
    assert (seen.sight.primary.ready, seen.sight.primary.known) == (3, 2)
    assert seen.again == pytest.approx(1.5)
    assert seen.sight.at == NOW


def test_a_deployment_that_was_never_asked_for_anything_is_no_slot() -> None:
    found = reading.read(canary())
    around = Around({("Deployment", "shop-deployment"): [deployment()]})

    assert wiring.canaries().see(found, around).sight.primary is None


def test_orders_that_left_no_trace_are_seen_too() -> None:
    canaries = wiring.canaries()
    found = reading.read(canary())
    around = Around({("Deployment", "shop-deployment"): [held()]})
    canaries.ledger.perform("u1", Slot.PRIMARY.value, 9)

    pods = canaries.see(found, around).sight.primary

    assert pods is not None
    assert pods.order == 9


@pytest.mark.parametrize(
    ("shown", "seen"),
    [
        (Shown(3, 0), Shown(5, 0)),
        (Shown(3, 10), Shown(3, 10)),
        (Shown(3, 0, "changed"), Shown(3, 0, "changed")),
        (Shown(7, 0), Shown(7, 0)),
        (None, None),
    ],
)
def test_a_standby_without_a_write_is_shown_at_weight_0_only(
    shown: Shown | None, seen: Shown | None
) -> None:
    assert seeing.standing_by(shown, 5) == seen


def test_of_a_secret_nothing_is_kept_but_a_digest() -> None:
    secret = {"metadata": {"name": "keys", "labels": {"a": "b"}}, "data": {"token": "c2VjcmV0"}}

    kept = seeing.kept_config(secret)

    assert "c2VjcmV0" not in str(kept)
    assert "token" not in str(kept)
    assert kept != seeing.kept_config({**secret, "data": {"token": "b3RoZXI="}})
