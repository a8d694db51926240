"""Where a stack's infrastructure stands: CloudFormation's 23 statuses, as seven that decide."""

import enum

from fairlead import errors


class StackStatus(enum.Enum):
    """What a deployment makes of the state of its infrastructure."""

    PROGRESS = "PROGRESS"
    ROLLING_BACK = "ROLLING_BACK"
    ROLLED_BACK = "ROLLED_BACK"
    CREATE_FAILED = "CREATE_FAILED"
    MISSING = "MISSING"
    COMPLETE = "COMPLETE"
    TERMINAL = "TERMINAL"

    @property
    def moving(self) -> bool:
        """It changes by itself: ask again later."""
        return self in {StackStatus.PROGRESS, StackStatus.ROLLING_BACK}


_BY_STATUS = {
    StackStatus.PROGRESS: (
        "CREATE_IN_PROGRESS UPDATE_IN_PROGRESS REVIEW_IN_PROGRESS IMPORT_IN_PROGRESS"
        " DELETE_IN_PROGRESS UPDATE_COMPLETE_CLEANUP_IN_PROGRESS IMPORT_ROLLBACK_IN_PROGRESS"
    ),
    StackStatus.ROLLING_BACK: (
        "ROLLBACK_IN_PROGRESS UPDATE_ROLLBACK_IN_PROGRESS"
        " UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
    ),
    StackStatus.ROLLED_BACK: "UPDATE_ROLLBACK_COMPLETE",
    StackStatus.CREATE_FAILED: "ROLLBACK_COMPLETE IMPORT_ROLLBACK_COMPLETE",
    StackStatus.MISSING: "DELETE_COMPLETE",
    StackStatus.COMPLETE: "CREATE_COMPLETE IMPORT_COMPLETE UPDATE_COMPLETE",
    StackStatus.TERMINAL: (
        "CREATE_FAILED ROLLBACK_FAILED DELETE_FAILED UPDATE_FAILED UPDATE_ROLLBACK_FAILED"
        " IMPORT_ROLLBACK_FAILED"
    ),
}
CLOUDFORMATION = {name: status for status, names in _BY_STATUS.items() for name in names.split()}
"""What each status of CloudFormation means to a deployment."""


def from_cloudformation(status: str) -> StackStatus:
    """The meaning of a status; empty is a stack that is not there."""
    if not status:
        return StackStatus.MISSING
    if status not in CLOUDFORMATION:
        raise errors.Rejected(
            f"unknown status of a CloudFormation stack: {status[:80]}",
            hint="a newer Fairlead may know it",
        )
    return CLOUDFORMATION[status]
