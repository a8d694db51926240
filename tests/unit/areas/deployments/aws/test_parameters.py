"""Images and counts that a step keeps or changes; every rule can be applied twice."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.aws import parameters

WANTED = {
    "DesiredCountWeb": "1",
    "ScaledFromWeb": "",
    "ImageWebApp": "shop:v2",
    "PriorityWeb0": "1007",
}
NOW = {
    "DesiredCountWeb": "3",
    "ScaledFromWeb": "",
    "ImageWebApp": "shop:v1",
    "PriorityWeb0": "1500",
}
DOWN = {**NOW, "DesiredCountWeb": "0", "ScaledFromWeb": "3"}


def after(now: dict[str, str], given: Any) -> dict[str, str]:
    """The parameters of a stack that was given these."""
    return {name: now[name] if value is None else value for name, value in given.items()}


def test_a_new_stack_at_zero_remembers_where_to_go() -> None:
    made = parameters.created(WANTED, "zero")

    assert (made["DesiredCountWeb"], made["ScaledFromWeb"]) == ("0", "1")
    assert parameters.created(WANTED, "new") == WANTED


@pytest.mark.parametrize("now", [NOW, DOWN])
def test_infrastructure_keeps_images_and_counts(now: dict[str, str]) -> None:
    assert after(now, parameters.updated(WANTED, now, "kept", "kept")) == now


def test_a_version_changes_images_alone() -> None:
    found = after(NOW, parameters.updated(WANTED, NOW, "new", "kept"))

    assert found == {**NOW, "ImageWebApp": "shop:v2"}


@pytest.mark.parametrize(
    ("now", "count"),
    [(NOW, "3"), (DOWN, "3"), ({**NOW, "DesiredCountWeb": "0"}, "1")],
)
def test_an_upsert_runs_in_the_end_with_as_many_as_before(now: dict[str, str], count: str) -> None:
    found = after(now, parameters.updated(WANTED, now, "new", "new"))

    assert (found["DesiredCountWeb"], found["ScaledFromWeb"]) == (count, "")
    assert after(found, parameters.updated(WANTED, found, "new", "new")) == found


def test_what_an_earlier_deployment_left_scaled_down_comes_back_with_the_version() -> None:
    up = after(NOW, parameters.updated(WANTED, NOW, "new", "restored"))
    down = after(DOWN, parameters.updated(WANTED, DOWN, "new", "restored"))

    assert up == down == {**NOW, "ImageWebApp": "shop:v2"}


def test_a_runtime_that_is_new_comes_up_with_the_others() -> None:
    wanted = {**WANTED, "DesiredCountWorker": "1", "ScaledFromWorker": ""}

    up = parameters.updated(wanted, NOW, "new", "kept")
    down = parameters.updated(wanted, DOWN, "new", "kept")

    assert (up["DesiredCountWorker"], up["ScaledFromWorker"]) == ("1", "")
    assert (down["DesiredCountWorker"], down["ScaledFromWorker"]) == ("0", "1")


def test_a_rule_keeps_its_priority_within_its_group_alone() -> None:
    moved = {**WANTED, "PriorityWeb0": "7"}

    assert parameters.updated(WANTED, NOW, "new", "new")["PriorityWeb0"] is None
    assert parameters.updated(moved, NOW, "new", "new")["PriorityWeb0"] == "7"


def test_scaling_down_and_up_again_ends_where_it_began_however_often_it_is_done() -> None:
    down = after(NOW, parameters.scaled(NOW, "zero"))
    twice = after(down, parameters.scaled(down, "zero"))
    up = after(twice, parameters.scaled(twice, "restored"))

    assert down == twice == DOWN
    assert up == NOW
    assert parameters.scaled(up, "restored") is None


def test_what_a_person_scaled_to_none_stays_there() -> None:
    none = {**NOW, "DesiredCountWeb": "0"}
    down = after(none, parameters.scaled(none, "zero"))

    assert after(down, parameters.scaled(down, "restored")) == none


def test_a_stack_without_services_has_nothing_to_scale() -> None:
    assert parameters.scaled({"Other": "1"}, "zero") is None
    with pytest.raises(errors.Rejected, match="no parameter to remember its count in"):
        parameters.scaled({"DesiredCountWeb": "1"}, "zero")
