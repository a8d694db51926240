"""Each of CloudFormation's statuses has one meaning to a deployment."""

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain import infrastructure
from fairlead.areas.deployments.domain.infrastructure import StackStatus


def test_all_23_statuses_have_a_meaning() -> None:
    assert len(infrastructure.CLOUDFORMATION) == 23


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        ("UPDATE_IN_PROGRESS", StackStatus.PROGRESS),
        ("UPDATE_ROLLBACK_IN_PROGRESS", StackStatus.ROLLING_BACK),
        ("UPDATE_ROLLBACK_COMPLETE", StackStatus.ROLLED_BACK),
        ("ROLLBACK_COMPLETE", StackStatus.CREATE_FAILED),
        ("DELETE_COMPLETE", StackStatus.MISSING),
        ("", StackStatus.MISSING),
        ("IMPORT_COMPLETE", StackStatus.COMPLETE),
        ("UPDATE_ROLLBACK_FAILED", StackStatus.TERMINAL),
    ],
)
def test_a_status_means_what_decides(status: str, meaning: StackStatus) -> None:
    assert infrastructure.from_cloudformation(status) is meaning


def test_a_status_of_tomorrow_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="SHINY"):
        infrastructure.from_cloudformation("SHINY")
