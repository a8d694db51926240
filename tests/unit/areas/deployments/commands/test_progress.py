"""What `deploy --wait` makes of each state of a deployment."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead.areas.deployments.commands.progress import progress
from fairlead.areas.deployments.domain.deployment.state import Deployment, Status, StepRun
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan.graph import Step
from tests.unit.areas.deployments.domain.samples import SPEC

RUN = StepRun(Step("CFUpsert", "CFUpdate"), StepStatus.FAILED, 1, "no room")
STATE = Deployment("d1", Status.RUNNING, SPEC, steps=(RUN,))


@pytest.mark.parametrize(
    ("changes", "expected", "why"),
    [
        ({}, "working", "INFRA_MIGRATING"),
        ({"status": Status.QUEUED}, "working", "QUEUED"),
        ({"status": Status.DONE}, "done", "v2 is deployed"),
        ({"status": Status.FAILED, "reason": "a\nb"}, "failed", "FAILED: a; b"),
        ({"status": Status.TERMINATED, "reason": "by ann"}, "failed", "TERMINATED: by ann"),
        ({"waits_for": "approval: asked"}, "paused", "approval: asked"),
        ({"waits_for": "end of a freeze: rest"}, "working", "end of a freeze: rest"),
    ],
)
def test_each_state_is_told(changes: Any, expected: str, why: str) -> None:
    told = progress(replace(STATE, **changes))

    assert (told.state, told.why) == (expected, why)
    assert told.frame[1] == "  FAILED    CFUpsert  no room"


def test_why_it_takes_its_time_is_told_while_it_does() -> None:
    told = progress(replace(STATE, reason="no worker serves aws@prod"))

    assert told.frame[1] == "  no worker serves aws@prod"
