"""A cloud in memory that has one scale set: it answers late, forgets answers and works slowly.

It performs what the machine asks for as the adapter does, by the same comparison.
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.messages import (
    Declared,
    ErrorClass,
    Failure,
    Operation,
    Progress,
    Style,
)
from fairlead.areas.resources.domain.reconcile.planning import planned
from tests.unit.areas.resources.domain import scale_set
from tests.unit.areas.resources.domain.scale_set import SEAL, SETS

ID = "/subscriptions/s/resourceGroups/g/providers/Acme.Toys/sets/a"
DECLARED = Declared("Acme.Toys/sets", "2026-01-01", ID, scale_set.spec())
LATER = "https://api.example/operations/"
DOWN = Failure(ErrorClass.TRANSIENT, "no answer")


def changed(**more: Any) -> Declared:
    """The same with other tags."""
    return replace(DECLARED, properties={**scale_set.spec(), "tags": more})


@dataclass
class Cloud:
    """What it has, and what was asked of it."""

    body: Json | None = None
    old: Json | None = None
    """What a stale read shows."""

    stale: int = 0
    """So many reads show what was."""

    asynchronous: bool = True
    running: str = ""
    left: int = 0
    """So many polls until the operation ends."""

    made: int = 0
    """How often the resource was created."""

    version: int = 0
    writes: list[str] = field(default_factory=list)
    operations: int = 0

    def perform(self, effect: Any) -> Any:
        match effect:
            case messages.Read(order, declared, last):
                found = planned(SETS, SEAL, declared, last, self.read())
                return messages.Seen(order, found.observation)
            case messages.Write(order, declared, last, digest):
                return self.write(order, declared, last, digest)
            case messages.Delete(order):
                if self.running:
                    return messages.Failed(order, Failure(ErrorClass.BUSY, "it is busy"))
                self.change(None)
                return self.taken(order)
            case messages.Poll(order, _, operation):
                return messages.Polled(order, self.progress(operation))
        raise AssertionError(effect)

    def read(self) -> Json | None:
        if self.stale:
            self.stale -= 1
            return copy.deepcopy(self.old)
        if self.running:
            self.work()
        if self.body is not None and self.running:
            busy = copy.deepcopy(self.body)
            busy["properties"]["provisioningState"] = "Updating"
            return busy
        return copy.deepcopy(self.body)

    def write(
        self, order: int, declared: Declared, last: messages.LastApplied, digest: str
    ) -> messages.Accepted | messages.Outdated | messages.Failed:
        found = planned(SETS, SEAL, declared, last, self.read())
        if found.request is None or found.observation.plan is None:
            return messages.Outdated(order)
        if found.observation.plan.digest != digest:
            return messages.Outdated(order)
        if self.running:
            return messages.Failed(order, Failure(ErrorClass.BUSY, "it is busy"))
        request = found.request
        etag = self.body["etag"] if self.body else ""
        if (request.if_none_match and self.body) or request.if_match not in ("", etag):
            return messages.Outdated(order)
        self.writes.append(digest)
        if self.body is None:
            self.made += 1
        assert request.body is not None
        if request.method == "PATCH":
            assert self.body is not None
            self.change(_merged(self.body, request.body))
        else:
            self.change(copy.deepcopy(request.body))
        return self.taken(order)

    def taken(self, order: int) -> messages.Accepted:
        if not self.asynchronous:
            return messages.Accepted(order)
        self.operations += 1
        self.running, self.left = f"{LATER}{self.operations}", 2
        return messages.Accepted(order, Operation(Style.LOCATION, self.running))

    def progress(self, operation: Operation) -> Progress:
        self.work()
        return Progress.RUNNING if self.running == operation.url else Progress.SUCCEEDED

    def work(self) -> None:
        self.left -= 1
        if self.left <= 0:
            self.running = ""

    def change(self, body: Json | None) -> None:
        self.old, self.body = self.body, body
        self.version += 1
        if body is not None:
            body["etag"] = f'"{self.version}"'


def _merged(body: Json, patch: Json) -> Json:
    """As a merge patch says (RFC 7396)."""
    made = copy.deepcopy(body)
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict):
            inner = made.get(name)
            made[name] = _merged(inner if isinstance(inner, dict) else {}, value)
        else:
            made[name] = value
    return made
