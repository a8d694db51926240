"""Stacks of CloudFormation: observed, created, updated, planned, cancelled, deleted.

What one request did is found by its token in the stack's events, so the end of somebody else's
update is not taken for ours. Where the events have no token, the stack's own status decides.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import botocore.exceptions

from fairlead import errors
from fairlead.clients.aws.session import code, said, short, translated

CAPABILITIES = ["CAPABILITY_NAMED_IAM"]
TOKEN_TAG = "fairlead-token"  # noqa: S105 - the name of a tag
_STACK = "AWS::CloudFormation::Stack"
_NOTHING = ("No updates are to be performed", "didn't contain changes")
_MOST_PAGES = 20


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack as CloudFormation describes it."""

    id: str
    status: str
    reason: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What a stack is to become."""

    token: str
    url: str = ""
    """Of the template; empty with no body: the one that the stack has."""

    body: str = ""
    parameters: Mapping[str, str | None] = field(default_factory=dict)
    """None: as it is."""

    def request(self) -> dict[str, Any]:
        template: dict[str, Any] = {"UsePreviousTemplate": True}
        if self.url:
            template = {"TemplateURL": self.url}
        elif self.body:
            template = {"TemplateBody": self.body}
        return {**template, "Capabilities": CAPABILITIES, "Parameters": self._parameters()}

    def _parameters(self) -> list[dict[str, Any]]:
        return [
            {"ParameterKey": name, "UsePreviousValue": True}
            if value is None
            else {"ParameterKey": name, "ParameterValue": value}
            for name, value in sorted(self.parameters.items())
        ]


@dataclass(frozen=True, slots=True)
class Operation:
    """How far one request has come: the status of its stack in its own events."""

    status: str
    reason: str = ""


class CloudFormation:
    """The stacks of one account."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def describe(self, name: str) -> Stack | None:
        """None where there is no such stack."""
        try:
            with translated():
                (found,) = self._client.describe_stacks(StackName=name)["Stacks"]
        except errors.Rejected as error:
            if "does not exist" in error.message:
                return None
            raise
        return Stack(
            found["StackId"],
            found["StackStatus"],
            found.get("StackStatusReason", ""),
            _pairs(found.get("Parameters", ()), "ParameterKey", "ParameterValue"),
            _pairs(found.get("Outputs", ()), "OutputKey", "OutputValue"),
            _pairs(found.get("Tags", ()), "Key", "Value"),
        )

    def create(self, name: str, change: Change) -> None:
        """Once for each token; Rejected where somebody else made a stack of this name."""
        request = change.request()
        request.pop("UsePreviousTemplate", None)
        token = short(change.token)
        try:
            self._call(
                "create_stack",
                StackName=name,
                ClientRequestToken=token,
                Tags=[{"Key": TOKEN_TAG, "Value": token}],
                **request,
            )
        except errors.Rejected as error:
            if _code(error) not in {"AlreadyExistsException", "TokenAlreadyExistsException"}:
                raise
            found = self.describe(name)
            if found is not None and found.tags.get(TOKEN_TAG) != token:
                raise errors.Rejected(
                    f"somebody else made the stack meanwhile: {name}",
                    hint="deploy again: it is updated then",
                ) from error

    def update(self, name: str, change: Change) -> bool:
        """Begin it, once for each token; False where there is nothing to change."""
        if self.operation(name, change.token) is not None:
            return True
        token = short(change.token)
        try:
            self._call("update_stack", StackName=name, ClientRequestToken=token, **change.request())
        except errors.Rejected as error:
            if _is_nothing(error):
                return False
            if _code(error) == "TokenAlreadyExistsException":
                return True
            if "_IN_PROGRESS state" in error.message:
                # Ours, sent a moment ago and not yet among the events, or somebody else's.
                raise errors.Unavailable(error.message, hint="it is tried again") from error
            raise
        return True

    def operation(self, name: str, token: str) -> Operation | None:
        """How far the request of this token has come; None where no event has it."""
        return self.told(name, token)[0]

    def told(self, name: str, token: str) -> tuple[Operation | None, bool]:
        """The same, and whether its events tell of requests at all, whosever they are."""
        wanted, asked = short(token), False
        newest: Operation | None = None
        for event in self._events(name):
            asked = asked or bool(event.get("ClientRequestToken"))
            if event.get("ClientRequestToken") != wanted:
                if newest is not None:
                    break
                continue
            about_stack = event.get("ResourceType") == _STACK
            if newest is None and about_stack and event["PhysicalResourceId"] == event["StackId"]:
                newest = Operation(event["ResourceStatus"], event.get("ResourceStatusReason", ""))
            elif newest is not None and event["ResourceStatus"].endswith("_FAILED"):
                # The earliest failure is the cause; what follows it is cancelled by it.
                said_ = event.get("ResourceStatusReason", event["ResourceStatus"])
                newest = Operation(newest.status, f"{event['LogicalResourceId']}: {said_}")
        return newest, asked

    def plan(self, name: str, change: Change, kind: str = "UPDATE", **more: Any) -> None:
        """Make a change set, once for each token."""
        token = short(change.token)
        request = {"ChangeSetName": token, "ChangeSetType": kind, "ClientToken": token}
        try:
            self._call("create_change_set", StackName=name, **request, **change.request(), **more)
        except errors.Rejected as error:
            if _code(error) != "AlreadyExistsException":
                raise

    def planned(self, name: str, token: str) -> list[dict[str, Any]] | None:
        """`Changes` of the change set; None while it is being made, Rejected where it failed."""
        found: list[dict[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            asked = {"StackName": name, "ChangeSetName": short(token), **more}
            answer = self._call("describe_change_set", **asked)
            if answer["Status"] in {"CREATE_PENDING", "CREATE_IN_PROGRESS"}:
                return None
            reason = answer.get("StatusReason", "")
            if answer["Status"] == "FAILED" and any(each in reason for each in _NOTHING):
                return []
            if answer["Status"] != "CREATE_COMPLETE":
                raise errors.Rejected(
                    f"the change set is {answer['Status']}: {reason}", hint="mend the template"
                )
            found += answer.get("Changes", [])
            if not answer.get("NextToken"):
                return found
            more = {"NextToken": answer["NextToken"]}

    def execute(self, name: str, token: str) -> None:
        asked = {"ChangeSetName": short(token), "ClientRequestToken": short(token)}
        self._call("execute_change_set", StackName=name, **asked)

    def discard(self, name: str, token: str) -> None:
        """Remove a change set; one that is gone is fine."""
        self._call("delete_change_set", StackName=name, ChangeSetName=short(token))

    def cancel(self, name: str, token: str) -> None:
        """End an update that is in progress; one that ended meanwhile is fine."""
        try:
            asked = {"StackName": name, "ClientRequestToken": short(token)}
            self._call("cancel_update_stack", **asked)
        except errors.Rejected as error:
            if "CancelUpdateStack cannot be called" not in error.message:
                raise

    def delete(self, name: str, token: str) -> None:
        self._call("delete_stack", StackName=name, ClientRequestToken=short(token))

    def _call(self, method: str, **request: Any) -> dict[str, Any]:
        with translated():
            answer: dict[str, Any] = getattr(self._client, method)(**request)
        return answer

    def _events(self, name: str) -> Iterator[dict[str, Any]]:
        """The newest first."""
        more: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            answer = self._call("describe_stack_events", StackName=name, **more)
            yield from answer["StackEvents"]
            if not answer.get("NextToken"):
                return
            more = {"NextToken": answer["NextToken"]}


def _pairs(found: Any, key: str, value: str) -> dict[str, str]:
    return {each[key]: each.get(value, "") for each in found}


def _code(error: errors.FairleadError) -> str:
    cause = error.__cause__
    return code(cause) if isinstance(cause, botocore.exceptions.ClientError) else ""


def _is_nothing(error: errors.FairleadError) -> bool:
    cause = error.__cause__
    message = said(cause) if isinstance(cause, botocore.exceptions.ClientError) else ""
    return any(each in message for each in _NOTHING)
