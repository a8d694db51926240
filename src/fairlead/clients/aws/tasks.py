"""Tasks of ECS that run once: begun once for each token, and how they ended."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fairlead import errors
from fairlead.clients.aws.session import short, translated

_EXITED = "EssentialContainerExited"


@dataclass(frozen=True, slots=True)
class Container:
    """What runs: one container, and the role that pulls its image."""

    family: str
    definition: dict[str, Any]
    execution_role: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended; no error is a success."""

    error: str = ""


class Tasks:
    """The tasks of one cluster."""

    def __init__(self, client: Any, cluster: str) -> None:
        self._client = client
        self._cluster = cluster

    def run(self, container: Container, token: str) -> str:
        """The ARN of the task that this token began, now or before."""
        by = short(token, 36)
        for status in ("RUNNING", "STOPPED"):
            with translated():
                found = self._client.list_tasks(
                    cluster=self._cluster, startedBy=by, desiredStatus=status
                )
            if found["taskArns"]:
                return str(found["taskArns"][0])
        with translated():
            answer = self._client.run_task(
                cluster=self._cluster,
                taskDefinition=self._registered(container),
                count=1,
                clientToken=short(token),
                startedBy=by,
            )
        if not answer["tasks"]:
            why = ", ".join(each.get("reason", "unknown") for each in answer["failures"])
            raise errors.Unavailable(
                f"no task could be started: {why}", hint="it is tried again; make room in ECS"
            )
        return str(answer["tasks"][0]["taskArn"])

    def ended(self, arn: str) -> Ended | None:
        """None while it runs."""
        with translated():
            found = self._client.describe_tasks(cluster=self._cluster, tasks=[arn])["tasks"]
        if not found:
            return Ended("the task is gone, and how it ended is not known")
        (task,) = found
        if task["lastStatus"] != "STOPPED":
            return None
        stop = task.get("stopCode", "")
        if stop and stop != _EXITED:
            return Ended(f"{stop}: {task.get('stoppedReason', 'no reason given')}")
        return _exited(task)

    def _registered(self, container: Container) -> str:
        """The same content is the same family, so a second delivery finds it there."""
        said = json.dumps(container.definition, sort_keys=True) + container.execution_role
        family = f"{container.family}-{hashlib.sha256(said.encode()).hexdigest()[:12]}"
        with translated():
            known = self._client.list_task_definitions(familyPrefix=family)["taskDefinitionArns"]
        if known:
            return family
        role = {"executionRoleArn": container.execution_role} if container.execution_role else {}
        with translated():
            self._client.register_task_definition(
                family=family, containerDefinitions=[_lowered(container.definition)], **role
            )
        return family


def _exited(task: dict[str, Any]) -> Ended:
    codes = [each.get("exitCode") for each in task.get("containers", ())]
    failed = [each for each in codes if each != 0]
    if not codes or None in codes:
        reasons = [each["reason"] for each in task.get("containers", ()) if each.get("reason")]
        why = ", ".join(reasons) or task.get("stoppedReason", "no reason given")
        return Ended(f"the task ended without an exit code: {why}")
    return Ended(f"the task exited with code {failed[0]}" if failed else "")


def _lowered(value: Any) -> Any:
    """The words of CloudFormation as ECS itself has them: `Name` is `name`."""
    if isinstance(value, dict):
        return {key[0].lower() + key[1:]: _lowered(each) for key, each in value.items()}
    return [_lowered(each) for each in value] if isinstance(value, list) else value
