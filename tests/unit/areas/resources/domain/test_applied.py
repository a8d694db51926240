"""What is kept of a spec: enough to find every change, and nothing that must not be seen."""

import json
from typing import Any

import pytest

from fairlead.areas.resources.domain.applied import Seal, are_alike
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS


@pytest.mark.requirement("resources R25")
def test_secrets_and_large_values_are_kept_as_digests_and_every_path_stays() -> None:
    spec = scale_set.spec()
    spec["properties"] |= {
        "phrase": "hunter2",
        "notes": "x" * 10_000,
        "disks": [{"size": 1, "key": "hunter3"}],
    }

    kept = SEAL.sealed(SETS, spec)

    assert kept["sku"] == spec["sku"]
    assert kept["properties"].keys() == spec["properties"].keys()
    assert "hunter" not in json.dumps(kept)
    assert len(json.dumps(kept)) < 1_000


@pytest.mark.parametrize(
    ("change", "is_same"), [({}, True), ({"phrase": "other"}, False), ({"notes": "y"}, False)]
)
def test_a_digest_tells_whether_a_value_is_the_same(
    change: dict[str, str], *, is_same: bool
) -> None:
    values = {"phrase": "hunter2", "notes": "x" * 1_000}
    kept = SEAL.sealed(SETS, {"properties": values})["properties"]

    found = [SEAL.is_same(value, kept[name]) for name, value in (values | change).items()]

    assert all(found) is is_same


def test_a_digest_of_another_key_says_nothing_of_a_secret() -> None:
    one, other = (
        Seal(key).sealed(SETS, {"properties": {"phrase": "hunter2"}}) for key in (b"a", b"b")
    )

    assert one != other


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [(1, 1.0, True), (True, 1, False), (0, False, False), ([1], [1], True), (None, "", False)],
)
def test_numbers_are_compared_as_json_has_them(one: Any, other: Any, *, alike: bool) -> None:
    assert are_alike(one, other) is alike
