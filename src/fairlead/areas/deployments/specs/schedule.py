"""A schedule: at its times, a branch, tag or commit of a push target is deployed."""

from typing import Annotated, Literal

import msgspec

from fairlead.areas.deployments.specs.application import Name
from fairlead.areas.deployments.specs.environment import EnvironmentName

Ref = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x20\x7f~^:?*\[\\]*$", max_length=250)]


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When something is deployed again."""

    environment: EnvironmentName
    application: Name
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    cron: str
    """Minute, hour, day of month, month, day of week."""

    kind: Literal["schedule"] = "schedule"
    time_zone: str = "UTC"
    branch: Ref = ""
    tag: Ref = ""
    commit: Annotated[str, msgspec.Meta(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})?$")] = ""
    catch_up: Literal["skip", "once", "all"] = "once"
    """What becomes of times at which nobody was there to deploy."""

    most: Annotated[int, msgspec.Meta(ge=1, le=50)] = 5
    """As many are made up for, the newest, where all are."""

    flags: list[str] = []

    @property
    def target(self) -> str:
        return f"{self.environment}/{self.application}"
