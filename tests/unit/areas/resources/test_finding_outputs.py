"""What one resource shows becomes what another one is given, and nothing more than that."""

from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.resources.domain import references
from fairlead.areas.resources.domain.reconcile.messages import Apply, ErrorClass
from fairlead.areas.resources.domain.reconcile.state import Phase
from tests.simulated_cloud import SimulatedCloud
from tests.unit.areas.resources.driven import ID, declared, driven

OTHER = ID.replace("/sets/a", "/sets/b")


def taking(path: str, id_: str = OTHER) -> dict[str, Any]:
    return {"fromOutput": {"type": "Acme.Toys/sets", "id": id_, "path": path}}


async def test_it_waits_for_the_value_and_follows_it(tmp_path: Path) -> None:
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path) as one:
        one.story.tell(Apply(declared(tags={"of": taking("properties.state")})))
        one.pending += one.story.last.effects
        await one.perform()
        assert one.story.state.failure is not None
        assert one.story.state.failure.kind is ErrorClass.DEPENDENCY
        assert OTHER in one.story.state.failure.message

        cloud.put(OTHER, {"properties": {"state": "here"}})
        assert (await one.rest()).phase is Phase.READY
        assert one.shown["tags"] == {"of": "here"}

        cloud.put(OTHER, {"properties": {"state": "there"}})
        await one.woken()
        assert one.shown["tags"] == {"of": "there"}
    assert one.wrote == ["PUT", "PATCH"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (taking("properties.phrase"), "a secret is no output"),
        (taking("tags.x", "/subscriptions/t/providers/Acme.Other/list/a"), "not an id of"),
        (taking("tags.x", f"{OTHER}/../c"), "not an id of"),
    ],
)
async def test_what_is_secret_or_elsewhere_is_not_taken(
    value: dict[str, Any], told: str, tmp_path: Path
) -> None:
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path) as one:
        cloud.put(OTHER, {"properties": {"phrase": "hunter2"}})
        await one.tell(Apply(declared(tags={"of": value})))

    assert (one.phase, one.wrote) == (Phase.FAILED, [])
    assert one.story.state.failure is not None
    assert told in one.story.state.failure.message


async def test_what_comes_from_outside_never_names_a_secret(tmp_path: Path) -> None:
    cloud = SimulatedCloud()
    async with driven(cloud, tmp_path, admin="hunter2") as one:
        cloud.put(OTHER, {"tags": {"x": {"fromSecret": "admin"}}})
        await one.tell(Apply(declared(tags={"of": taking("tags.x")})))

    (_, _, body), *_ = cloud.writes
    assert body is not None
    assert body["tags"] == {"of": {"fromSecret": "admin"}}


def test_what_only_looks_like_a_reference_is_a_value() -> None:
    for value in ({"fromOutput": "x"}, {"fromOutput": {"id": "/a"}}, {"fromOutput": {}, "b": 1}):
        assert references.output_of(value) is None
        assert references.brought({"a": value}, {}) == {"a": value}
