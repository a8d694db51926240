"""What a file says was observed, as plans need it."""

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.specs import observed
from tests.unit.areas.deployments.domain.samples import ORDERS


@pytest.mark.parametrize(
    ("stack", "exists"),
    [("UPDATE_COMPLETE", True), ("MISSING", False), ("", False), ("DELETE_COMPLETE", False)],
)
def test_a_stack_is_there_or_missing(stack: str, *, exists: bool) -> None:
    assert observed.observation(observed.read({"stack": stack})).exists is exists


def test_what_is_not_known_leaves_the_class_open() -> None:
    for content in (
        {"stack": "UPDATE_COMPLETE"},
        {"stack": "UPDATE_COMPLETE", "changes": []},
        {"stack": "UPDATE_COMPLETE", "changes": [], "databases": {"orders": {"pending": 2}}},
    ):
        assert observed.findings(observed.read(content), (ORDERS,)) is None


def test_a_database_with_nothing_pending_has_no_say() -> None:
    world = observed.read({"stack": "X", "changes": [], "databases": {"orders": {"pending": 0}}})

    found = observed.findings(world, (ORDERS,))

    assert found is not None
    assert [each.impact for each in found] == [Impact.NOP]


def test_a_status_that_nobody_knows_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="SHINY"):
        observed.observation(observed.read({"stack": "SHINY"}))
