"""Rules of a file, and hooks of packages, at work on a resource."""

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.resources import hooking, plan
from fairlead.areas.resources.domain.hooks import Hook, Hooks, Occasion, Point
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reconcile.messages import Apply, Remove
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.areas.resources.finding import Finder, Shown
from fairlead.clients.arm.client import Arm
from tests.simulated_cloud import Behaviour, SimulatedCloud
from tests.unit.areas.resources.domain.scale_set import SETS
from tests.unit.areas.resources.driven import APPLY, ID, SPEC, declared, driven, ports

THEIRS: list[Any] = []


def theirs() -> list[Any]:
    return THEIRS


def model(folder: Path, *rules: dict[str, Any], **more: Any) -> Model:
    file = folder / "hooks.json"
    file.write_text(json.dumps({"rules": list(rules), **more}))
    return Model.of(SETS.type, hooking.load(str(file)))


def file(**more: Any) -> plan.CloudResource:
    said = {"kind": "cloud-resource", "type": "Acme.Toys/sets", "resourceId": ID}
    return plan.read({**said, "properties": SPEC, **more})


@pytest.mark.requirement("resources R5", "resources R22")
def test_a_rule_refuses_a_spec_before_anything_is_asked(tmp_path: Path) -> None:
    rule = {"point": "before-validate", "types": ["acme.toys/*"], "refuse": "three at most"}
    of = model(tmp_path, {**rule, "when": {"sku.capacity": 4}})

    assert plan.declared(of, file()).properties == SPEC
    with pytest.raises(errors.Rejected, match="three at most"):
        plan.declared(of, file(properties={"sku": {"capacity": 4}}))


@pytest.mark.requirement("resources R4", "resources R23")
async def test_rules_change_what_is_wanted_what_is_sent_and_what_is_shown(tmp_path: Path) -> None:
    of = model(
        tmp_path,
        {"point": "before-diff", "when": {"tags.team": None}, "set": {"tags.team": "shop"}},
        {"point": "mutate-request", "set": {"extra": True}},
        {"point": "status-join", "set": {"extra": None}},
    )
    async with driven(SimulatedCloud(), tmp_path, of) as one:
        await one.tell(APPLY)
        await one.woken()

    assert (one.phase, one.wrote) == (Phase.READY, ["PUT"])
    assert (one.shown["tags"], one.shown["extra"]) == ({"tag1": "value", "team": "shop"}, True)


@pytest.mark.requirement("resources R5")
async def test_a_hook_that_fails_is_a_condition_and_no_crash(tmp_path: Path) -> None:
    def broken(_: Occasion) -> Occasion:
        raise ZeroDivisionError

    hooks = Hooks(registered=(Hook("mine", Point.BEFORE_DIFF, broken),))
    async with driven(SimulatedCloud(), tmp_path, Model.of(SETS.type, hooks)) as one:
        await one.tell(APPLY)

        assert (one.phase, one.wrote) == (Phase.FAILED, [])
        assert one.story.state.failure is not None
        assert one.story.state.failure.message == (
            "the hook mine failed at before-diff: ZeroDivisionError"
        )


async def test_a_rule_says_how_to_wait_for_an_error(tmp_path: Path) -> None:
    rule = {"point": "classify-error", "when": {"code": "ResourceGroupNotFound"}}
    of = model(tmp_path, {**rule, "class": "Refused"})
    async with driven(SimulatedCloud(Behaviour(groups=())), tmp_path, of) as one:
        await one.tell(APPLY)

    assert one.phase is Phase.FAILED


async def test_a_rule_keeps_a_resource_from_being_deleted(tmp_path: Path) -> None:
    of = model(tmp_path, {"point": "before-delete", "refuse": "ask the owner first"})
    async with driven(SimulatedCloud(), tmp_path, of) as one:
        await one.tell(Apply(declared()))
        await one.tell(Remove())

    assert (one.phase, one.wrote) == (Phase.FAILED, ["PUT"])


@pytest.mark.requirement("resources R35")
async def test_further_calls_are_joined_and_one_that_fails_is_a_warning(tmp_path: Path) -> None:
    join = {"types": ["*"], "path": "instanceView", "into": "properties.instanceView"}
    of = model(
        tmp_path, joins=[join, {**join, "path": "/rollingUpgrades/latest", "into": "upgrade"}]
    )
    cloud = SimulatedCloud()
    async with cloud.serving():
        world = ports(cloud, tmp_path, of)
        cloud.put(ID, {"tags": {}, "properties": {"mode": "Flexible"}})
        cloud.put(f"{ID}/instanceView", {"statuses": ["running"]})
        assert isinstance(world.api, Arm)
        async with world.api.open():
            finder = Finder(world.api, of)
            found = await finder.at(ID)
            assert isinstance(found, Shown)
            assert found.observed is not None
            joined, warnings = await finder.joined(ID, found.observed)

    assert joined["properties"]["instanceView"]["statuses"] == ["running"]
    assert joined["properties"]["mode"] == "Flexible"
    assert "upgrade" not in joined
    (warning,) = warnings
    assert warning.startswith("/rollingUpgrades/latest: ResourceNotFound")


def test_packages_register_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Hook("theirs", Point.IMPORT, lambda occasion: occasion)
    monkeypatch.setattr(f"{__name__}.THEIRS", [made])
    entry = importlib.metadata.EntryPoint("a", f"{__name__}:theirs", hooking.GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [entry])

    assert hooking.load("").registered == (made,)
    monkeypatch.setattr(f"{__name__}.THEIRS", ["no hook"])
    with pytest.raises(errors.Rejected, match="no hooks"):
        hooking.load("")


@pytest.mark.parametrize(
    "rule",
    [
        {"point": "nowhere"},
        {"point": "classify-error"},
        {"point": "classify-error", "class": "Gone"},
        {"point": "before-diff", "class": "Busy"},
        {"point": "before-delete", "set": {"a": 1}},
        {"point": "status-join", "refuse": "no"},
        {"point": "before-diff", "sett": {}},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(errors.FairleadError):
        model(tmp_path, rule)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.Rejected, match="no hooks can be read"):
        hooking.load(str(tmp_path / "none.json"))
