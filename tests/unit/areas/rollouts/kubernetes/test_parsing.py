"""A spec is read once for each generation of it, and judged anew by new rules."""

from typing import Any

import pytest

from fairlead.areas.rollouts.domain.plan import triggers
from fairlead.areas.rollouts.kubernetes import parsing
from fairlead.errors import Rejected
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot


def canary(generation: int, uid: str = "u1", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "web", "image": "shop:1"}]}}
    labels = {"matchLabels": {"app": "shop"}}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "CanaryDeployment",
        "metadata": {"name": "shop", "namespace": "ns", "uid": uid, "generation": generation},
        "spec": {
            "deploymentSpec": {"selector": labels, "template": template},
            "serviceSpec": {"ports": [{"port": 80}]},
            "provider": {"replicas": {}},
            **spec,
        },
    }


def test_the_same_generation_is_read_once_and_the_next_one_anew() -> None:
    parse_cache = parsing.ParseCache()

    first = parse_cache.of(canary(1))

    assert parse_cache.of(canary(1)) is first
    second = parse_cache.of(canary(2, strategy={"steps": [10]}))
    assert second.spec.strategy != first.spec.strategy
    assert parse_cache.of(canary(1, uid="u2")) is not first


def test_what_was_found_good_is_so_only_by_the_same_rules_and_for_the_same_spec() -> None:
    parse_cache, rules, others = parsing.ParseCache(), object(), object()
    found = parse_cache.of(canary(1))

    parse_cache.good(found, rules)

    assert parse_cache.is_good(found, rules)
    assert not parse_cache.is_good(found, others)
    assert not parse_cache.is_good(parse_cache.of(canary(2)), rules)


def test_a_template_is_hashed_once_for_its_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    parse_cache, hashed = parsing.ParseCache(), list[object]()
    real = triggers.template_hash

    def counted(template: dict[str, Any]) -> str:
        hashed.append(template)
        return real(template)

    monkeypatch.setattr(triggers, "template_hash", counted)
    found = parse_cache.of(canary(1))

    first = parse_cache.desired(found, FakeSnapshot())

    assert first == parse_cache.desired(parse_cache.of(canary(1)), FakeSnapshot())
    assert len(hashed) == 1
    changed = {**found.workload, "template": {"spec": {"containers": [{"image": "shop:2"}]}}}
    assert (
        parse_cache.desired(parse_cache.of(canary(2, deploymentSpec=changed)), FakeSnapshot())
        != first
    )
    assert first == parsing.desired(found, FakeSnapshot())


def test_what_cannot_be_read_is_refused_each_time() -> None:
    parse_cache = parsing.ParseCache()

    for _ in range(2):
        with pytest.raises(Rejected):
            parse_cache.of(canary(1, strategy={"steps": [10], "stepWeight": 20}))


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_REMEMBERED", 2)
    parse_cache = parsing.ParseCache()
    first = parse_cache.of(canary(1, uid="u1"))

    for uid in ("u2", "u3"):
        parse_cache.of(canary(1, uid=uid))

    assert parse_cache.of(canary(1, uid="u1")) is not first


def test_a_secret_that_may_not_be_read_is_no_part_of_a_version() -> None:
    around_, blind = FakeSnapshot(), FakeSnapshot(absent=frozenset({"Secret"}))
    kept = {"metadata": {"name": "keys"}, "data": {"digest": "d1"}}
    for one in (around_, blind):
        one.things["Secret", "keys"] = [kept]
    container = {"name": "web", "envFrom": [{"secretRef": {"name": "keys"}}]}
    template = {"spec": {"containers": [container]}}

    assert parsing.version(template, around_).configs
    assert not parsing.version(template, blind).configs
