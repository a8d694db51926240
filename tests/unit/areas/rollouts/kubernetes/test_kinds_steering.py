"""A spec that stops making sense: the last one that did is gone by, and says so."""

from typing import Any

import pytest

from fairlead.areas.rollouts.domain import messages, status
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.kubernetes import kinds, names, parsing, wiring
from fairlead.errors import Rejected
from fairlead.kubernetes.kinds import InvalidSpec, ObservedObject
from fairlead.kubernetes.writes.seals import Seals
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary

DOWN = {"strategy": {"steps": [50, 20]}}
SEALS = Seals(bytes(32))


def obj(generation: int = 1, told: Json | None = None, **spec: Any) -> Json:
    made = canary(**spec)
    made["metadata"]["generation"] = generation
    return {**made, "status": told} if told is not None else made


def running(**more: Any) -> Json:
    return {"canaryRevision": "r2", **more}


def sealed(seen: Json) -> Json:
    """With the seal that a status of ours has."""
    told = seen["status"]
    content = {"requests": {}, **{key: told.get(key) for key in ("memory", "accepted")}}
    content |= {key: told[key] for key in ("requests",) if key in told}
    return {**seen, "status": {**told, "seal": SEALS.of(seen, content)}}


def sealing() -> kinds.RolloutKinds:
    canaries = wiring.canaries()
    canaries.seals = SEALS
    return canaries


def halted(by: str) -> Json:
    return running(paused={"by": by, "since": "2026-01-01T12:00:00Z"})


def context_of(
    canaries: kinds.RolloutKinds, seen: Json, snapshot: FakeSnapshot | None = None
) -> ObservedObject:
    return canaries.observe(seen, snapshot or FakeSnapshot())


def test_one_that_never_made_sense_is_refused_whole() -> None:
    canaries = wiring.canaries()

    with pytest.raises(InvalidSpec, match="weights of steps go down"):
        context_of(canaries, obj(1, running(), **DOWN))

    assert canaries.refused == {"u1"}


def test_a_run_is_held_by_the_last_spec_that_made_sense() -> None:
    canaries = wiring.canaries()
    context_of(canaries, obj())

    held = context_of(canaries, obj(2, running(), **DOWN))

    assert held.refusal is not None
    assert "spec.strategy: weights of steps go down" in held.refusal.message
    assert list(held.levels) == ["observed", "paused"]
    assert held.levels["paused"].command == messages.Pause(kinds.BY_REVIEW, held.refusal.message)
    assert canaries.refused == set()
    assert canaries.parse_cache.acting(obj(2, **DOWN)).generation == 1


def test_one_at_rest_is_not_paused() -> None:
    canaries = wiring.canaries()
    context_of(canaries, obj())

    assert list(context_of(canaries, obj(2, {"phase": "Stable"}, **DOWN)).levels) == ["observed"]


def test_every_verb_may_be_requested_and_a_pause_comes_first() -> None:
    asked = obj()
    values = dict.fromkeys(VERBS, "1") | {"pause": "stocktaking", "rollback": "r1/2"}
    asked["metadata"]["annotations"] = {f"fairlead.dev/{verb}": values[verb] for verb in values}

    requests = context_of(wiring.canaries(), asked).requests

    assert [(verb, each.command) for verb, each in requests.items()] == [
        ("pause", messages.Pause("annotation", "stocktaking")),
        ("resume", messages.Resume("annotation")),
        ("approve", messages.Approve("annotation")),
        ("promote", messages.PromoteFully("annotation")),
        ("abort", messages.Abort("annotation")),
        ("retry", messages.Retry("annotation")),
        ("rollback", messages.RollBackTo("r1", "annotation")),
    ]


def test_a_rollback_to_nothing_is_refused_as_a_request_not_with_the_object() -> None:
    asked = obj()
    asked["metadata"]["annotations"] = {"fairlead.dev/rollback": "/2"}

    (request,) = context_of(wiring.canaries(), asked).requests.values()

    assert request.command == messages.RollBackTo("", "annotation")


def test_only_what_takes_nothing_further_is_obeyed() -> None:
    canaries = wiring.canaries()
    context_of(canaries, obj())
    asked = obj(2, running(), **DOWN)
    asked["metadata"]["annotations"] = {f"fairlead.dev/{verb}": "1" for verb in VERBS}

    assert set(context_of(canaries, asked).requests) == {"abort", "pause"}


def approving(value: str = "1", told: Json | None = None) -> Json:
    asked = obj(1, told or {})
    asked["metadata"]["annotations"] = {"fairlead.dev/approve": value}
    return asked


def test_what_was_done_stays_done_when_its_status_is_taken_away() -> None:
    canaries, begun = sealing(), FakeSnapshot(children=[canary()])
    done = sealed(approving(told={"requests": {"approve": "1"}}))

    assert context_of(canaries, done, begun).requests == {}
    assert context_of(canaries, approving(), begun).requests == {}
    assert set(context_of(canaries, approving("2"), begun).requests) == {"approve"}


@pytest.mark.parametrize(
    "told", [{}, {"requests": {}, "seal": "none"}, {"requests": {"pause": "1"}}]
)
def test_where_a_status_is_not_ours_what_stands_there_is_done(told: Json) -> None:
    """Else a status without its requests has an old approval obeyed at the next gate."""
    canaries, begun = sealing(), FakeSnapshot(children=[canary()])

    assert context_of(canaries, approving(told=told), begun).requests == {}
    assert set(context_of(canaries, approving("2", told), begun).requests) == {"approve"}


def test_on_a_new_object_what_stands_there_is_asked() -> None:
    held = approving()
    held["metadata"]["finalizers"] = [names.FINALIZER]

    assert set(context_of(sealing(), approving()).requests) == {"approve"}
    assert context_of(sealing(), held).requests == {}


def test_what_stands_around_it_holds_a_run_too_and_lets_it_go_on() -> None:
    canaries = wiring.canaries()
    snapshot = FakeSnapshot(absent=frozenset({"VirtualService"}))
    context_of(canaries, obj())

    held = context_of(canaries, obj(1, running()), snapshot)
    again = context_of(canaries, obj(1, halted(kinds.BY_REVIEW)))

    assert held.refusal is not None
    assert isinstance(held.levels["paused"].command, messages.Pause)
    assert again.refusal is None
    assert again.levels["paused"].command == messages.Resume(kinds.BY_REVIEW)


def test_a_pause_of_others_outlives_the_mending() -> None:
    canaries = wiring.canaries()
    context_of(canaries, obj())
    context_of(canaries, obj(2, halted("annotation"), **DOWN))

    assert "paused" not in context_of(canaries, obj(3, halted("annotation"))).levels


def kept(seen: Json, *, under_way: bool = True) -> Json | None:
    parse_cache = parsing.ParseCache()
    parse_cache.stand(parse_cache.of(seen), seen)
    return parse_cache.kept(seen, under_way=under_way)


def test_a_successor_learns_from_the_status_what_made_sense() -> None:
    told = kept(obj(4))
    assert told is not None
    assert "template" not in told["spec"]["deploymentSpec"]

    canaries = sealing()
    held = context_of(canaries, sealed(obj(5, running(accepted=told), **DOWN)))

    assert held.refusal is not None
    assert canaries.parse_cache.acting(obj(5, **DOWN)) == parsing.read(
        {**obj(4), "spec": told["spec"]}
    )


def test_a_successor_holds_what_only_its_snapshot_refuses() -> None:
    told, snapshot = kept(obj(4)), FakeSnapshot(absent=frozenset({"VirtualService"}))

    canaries = sealing()
    held = context_of(canaries, sealed(obj(4, running(accepted=told))), snapshot)

    assert held.refusal is not None
    assert canaries.parse_cache.acting(obj(4)).workload["template"]


@pytest.mark.parametrize("told", [7, {}, {"spec": []}, {"generation": 3, "spec": DOWN}])
def test_a_status_that_tells_nonsense_is_no_help(told: Any) -> None:
    with pytest.raises(InvalidSpec, match="weights of steps go down"):
        context_of(sealing(), sealed(obj(5, running(accepted=told), **DOWN)))


def test_a_status_is_adopted_under_a_seal_of_ours_only() -> None:
    canaries, memory = sealing(), {"shape": 1, "state": "Idle", "data": {}}
    adopt = canaries.kinds[0].adopt
    own = sealed(obj(1, {"memory": memory}))

    assert adopt(obj()) is None
    assert adopt(obj(1, {"phase": "Stable"})) is None
    assert adopt(own) == messages.Adopt(status.read(own["status"]))
    for forged in (
        obj(1, {"memory": memory}),
        obj(1, {"accepted": {"generation": 1, "spec": {}}}),
        {**own, "status": {**own["status"], "memory": {**memory, "state": "Gone"}}},
        {**own, "metadata": {**own["metadata"], "namespace": "other"}},
    ):
        with pytest.raises(Rejected, match="was not written by this operator"):
            adopt(forged)


def test_a_spec_that_somebody_else_wrote_into_the_status_is_not_gone_by() -> None:
    told = kept(obj(4))
    own = sealed(obj(5, running(accepted=told), **DOWN))
    namesake = {**own, "metadata": {**own["metadata"], "uid": "u2"}}
    edited = {**own, "status": {**own["status"], "accepted": {**(told or {}), "generation": 3}}}

    for forged in (obj(5, running(accepted=told), **DOWN), namesake, edited):
        with pytest.raises(InvalidSpec, match="weights of steps go down"):
            context_of(sealing(), forged)


def test_at_rest_only_one_that_must_give_something_back_is_kept() -> None:
    theirs = obj(provider={"istio": {"vsName": "front"}})

    assert kept(obj(), under_way=False) is None
    assert kept(theirs, under_way=False) is not None


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "_REMEMBERED", 1)
    parse_cache = parsing.ParseCache()
    for uid in ("u1", "u2"):
        seen = obj()
        seen["metadata"]["uid"] = uid
        parse_cache.stand(parse_cache.of(seen), seen)

    assert parse_cache.standing(obj()) is None
