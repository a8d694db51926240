"""A spec that stops making sense: the last one that did is gone by, and says so."""

from typing import Any

import pytest

from fairlead.adapters.canaries import kinds, reading, wiring
from fairlead.domain.rollouts import messages
from fairlead.intents.kubernetes import InvalidSpec, Look
from tests.unit.adapters.canaries.around import Around, Json, canary

DOWN = {"strategy": {"steps": [50, 20]}}


def obj(generation: int = 1, status: Json | None = None, **spec: Any) -> Json:
    made = canary(**spec)
    made["metadata"]["generation"] = generation
    return {**made, "status": status} if status is not None else made


def running(**more: Any) -> Json:
    return {"canaryRevision": "r2", **more}


def halted(by: str) -> Json:
    halt = {"by": by, "at": "2026-01-01T12:00:00Z"}
    return running(memory={"data": {"book": {"paused": halt}}})


def look(canaries: kinds.Canaries, seen: Json, around: Around | None = None) -> Look:
    return canaries.observe(seen, around or Around())


def test_one_that_never_made_sense_is_refused_whole() -> None:
    canaries = wiring.canaries()

    with pytest.raises(InvalidSpec, match="steps that go down"):
        look(canaries, obj(1, running(), **DOWN))

    assert canaries.refused == {"u1"}


def test_a_run_is_held_by_the_last_spec_that_made_sense() -> None:
    canaries = wiring.canaries()
    look(canaries, obj())

    held = look(canaries, obj(2, running(), **DOWN))

    assert held.refusal is not None
    assert "spec.strategy: steps that go down" in held.refusal.message
    assert list(held.levels) == ["sight", "paused"]
    assert held.levels["paused"].command == messages.Pause(kinds.BY_REVIEW, held.refusal.message)
    assert canaries.refused == set()
    assert canaries.readings.acting(obj(2, **DOWN)).generation == 1


def test_one_at_rest_is_not_paused() -> None:
    canaries = wiring.canaries()
    look(canaries, obj())

    assert list(look(canaries, obj(2, {"phase": "Stable"}, **DOWN)).levels) == ["sight"]


def test_only_what_takes_nothing_further_is_obeyed() -> None:
    canaries = wiring.canaries()
    look(canaries, obj())
    asked = obj(2, running(), **DOWN)
    verbs = ("abort", "pause", "approve", "promote", "resume", "retry", "rollback")
    asked["metadata"]["annotations"] = {f"fairlead.dev/{verb}": "1" for verb in verbs}

    assert set(look(canaries, asked).requests) == {"abort", "pause"}


def test_what_stands_around_it_holds_a_run_too_and_lets_it_go_on() -> None:
    canaries = wiring.canaries()
    around = Around(absent=frozenset({"VirtualService"}))
    look(canaries, obj())

    held = look(canaries, obj(1, running()), around)
    again = look(canaries, obj(1, halted(kinds.BY_REVIEW)))

    assert held.refusal is not None
    assert isinstance(held.levels["paused"].command, messages.Pause)
    assert again.refusal is None
    assert again.levels["paused"].command == messages.Resume(kinds.BY_REVIEW)


def test_a_pause_of_others_outlives_the_mending() -> None:
    canaries = wiring.canaries()
    look(canaries, obj())
    look(canaries, obj(2, halted("annotation"), **DOWN))

    assert "paused" not in look(canaries, obj(3, halted("annotation"))).levels


def kept(seen: Json, *, under_way: bool = True) -> Json | None:
    readings = reading.Readings()
    readings.stand(readings.of(seen), seen)
    return readings.kept(seen, under_way=under_way)


def test_a_successor_learns_from_the_status_what_made_sense() -> None:
    told = kept(obj(4))
    assert told is not None
    assert "template" not in told["spec"]["deploymentSpec"]

    canaries = wiring.canaries()
    held = look(canaries, obj(5, running(accepted=told), **DOWN))

    assert held.refusal is not None
    assert canaries.readings.acting(obj(5, **DOWN)) == reading.read(
        {**obj(4), "spec": told["spec"]}
    )


def test_a_successor_holds_what_only_its_surroundings_refuse() -> None:
    told, around = kept(obj(4)), Around(absent=frozenset({"VirtualService"}))

    canaries = wiring.canaries()
    held = look(canaries, obj(4, running(accepted=told)), around)

    assert held.refusal is not None
    assert canaries.readings.acting(obj(4)).workload["template"]


@pytest.mark.parametrize("told", [7, {}, {"spec": []}, {"generation": 3, "spec": DOWN}])
def test_a_status_that_tells_nonsense_is_no_help(told: Any) -> None:
    with pytest.raises(InvalidSpec, match="steps that go down"):
        look(wiring.canaries(), obj(5, running(accepted=told), **DOWN))


def test_at_rest_only_one_that_must_give_something_back_is_kept() -> None:
    theirs = obj(provider={"istio": {"vsName": "front"}})

    assert kept(obj(), under_way=False) is None
    assert kept(theirs, under_way=False) is not None


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_REMEMBERED", 1)
    readings = reading.Readings()
    for uid in ("u1", "u2"):
        seen = obj()
        seen["metadata"]["uid"] = uid
        readings.stand(readings.of(seen), seen)

    assert readings.standing(obj()) is None
