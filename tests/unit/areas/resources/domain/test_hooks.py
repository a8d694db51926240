"""Hooks: named points in one order, per type, whose failure is told and nothing else."""

from dataclasses import replace

import pytest

from fairlead import errors
from fairlead.areas.resources.domain.hooks import Hook, Hooks, Join, Occasion, Point
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reconcile.messages import Declared, LastApplied
from fairlead.areas.resources.domain.reconcile.planning import planned
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS

TYPE = "Acme.Toys/sets"


def tagged(value: str) -> Hook:
    def call(occasion: Occasion) -> Occasion:
        tags = {**occasion.spec.get("tags", {}), "by": value}
        return replace(occasion, spec={**occasion.spec, "tags": tags})

    return Hook(value, Point.BEFORE_DIFF, call)


@pytest.mark.requirement("resources R4", "resources R5")
def test_they_run_in_their_order_for_their_types_alone() -> None:
    others = replace(tagged("no"), types=("Acme.Other/*",))
    hooks = Hooks(registered=(tagged("a"), others, tagged("b"))).of(TYPE)

    assert hooks.spec(Point.BEFORE_DIFF, "", {"x": 1}) == {"x": 1, "tags": {"by": "b"}}
    assert hooks.spec(Point.BEFORE_VALIDATE, "", {"x": 1}) == {"x": 1}
    assert [each.value for each in Point] == [
        "import",
        "before-validate",
        "before-diff",
        "mutate-request",
        "classify-error",
        "after-success",
        "status-join",
        "before-delete",
    ]


@pytest.mark.parametrize("kind", ["raises", "answers otherwise"])
def test_one_that_fails_is_told_by_its_name_and_point(kind: str) -> None:
    def call(occasion: Occasion) -> Occasion:
        if kind == "raises":
            raise KeyError("password=hunter2")
        return occasion.spec  # type: ignore[return-value]  # that is the mistake

    hooks = Hooks(registered=(Hook("mine", Point.BEFORE_DELETE, call, ("acme.toys/*",)),)).of(TYPE)
    with pytest.raises(errors.Rejected, match="the hook mine failed at before-delete") as told:
        hooks.run(Occasion(Point.BEFORE_DELETE, TYPE))

    assert "hunter2" not in told.value.message


def test_a_joined_call_is_for_its_types() -> None:
    hooks = Hooks(joins=(Join("a", "a", (TYPE,)), Join("b", "b", ("Acme.Other/*",))))

    assert [each.path for each in hooks.of(TYPE).joins] == ["a"]


@pytest.mark.requirement("resources R23")
def test_what_is_planned_is_what_hooks_made_of_it() -> None:
    def renamed(occasion: Occasion) -> Occasion:
        return replace(occasion, body={**(occasion.body or {}), "kind": "v2"})

    hooks = Hooks(registered=(tagged("a"), Hook("b", Point.MUTATE_REQUEST, renamed)))
    model = Model.of(SETS.type, hooks)
    told = Declared(TYPE, "1", "/sets/a", {"location": "westus"})

    first = planned(model, SEAL, told, LastApplied(), None)
    assert first.request is not None
    assert first.request.body == {"location": "westus", "tags": {"by": "a"}, "kind": "v2"}
    plain = planned(SETS, SEAL, told, LastApplied(), None)
    assert first.observation.plan != plain.observation.plan
    assert first.observation.sealed == {"location": "westus", "tags": {"by": "a"}}


def test_what_is_as_declared_counts_so_unless_a_hook_refuses() -> None:
    def check(occasion: Occasion) -> Occasion:
        assert occasion.observed is not None
        if occasion.observed["tags"] != {"ready": "yes"}:
            raise errors.Rejected("not ready", hint="wait")
        return occasion

    model = Model.of(SETS.type, Hooks(registered=(Hook("c", Point.AFTER_SUCCESS, check),)))
    told = Declared(TYPE, "1", "/sets/a", {})

    with pytest.raises(errors.Rejected, match="not ready"):
        planned(model, SEAL, told, LastApplied(), {"tags": {}})
    assert planned(model, SEAL, told, LastApplied(), {"tags": {"ready": "yes"}}).request is None
