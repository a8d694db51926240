"""Secrets by their names: put in where a request is made, and refused everywhere else."""

import pytest

from fairlead.areas.resources.domain import references
from tests.unit.areas.resources.domain.scale_set import SETS

NAMED = {"fromSecret": "admin"}


def test_names_become_values_wherever_they_stand() -> None:
    spec = {"a": NAMED, "b": [{"c": NAMED}], "d": {"fromSecret": 1}, "e": "plain"}

    assert references.resolved(spec, {"admin": "hunter2"}.__getitem__) == {
        "a": "hunter2",
        "b": [{"c": "hunter2"}],
        "d": {"fromSecret": 1},
        "e": "plain",
    }


@pytest.mark.requirement("resources R25")
def test_a_secret_that_is_written_out_is_refused_without_being_told() -> None:
    spec = {"properties": {"phrase": "hunter2", "disks": [{"size": 1, "key": "k3y"}]}}

    found = list(references.problems(SETS, spec))

    assert [each.path for each in found] == ["properties.phrase", "properties.disks.0.key"]
    assert "hunter2" not in str(found)
    assert "{fromSecret: FILE}" in found[0].hint


def test_a_name_where_everybody_could_read_its_value_is_refused() -> None:
    spec = {"tags": {"mine": NAMED}, "properties": {"phrase": NAMED, "notes": NAMED}}

    found = list(references.problems(SETS, spec))

    assert [each.path for each in found] == ["tags.mine", "properties.notes"]
