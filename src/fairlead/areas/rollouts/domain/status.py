"""A rollout's status in its one definition, and how it is made of a state.

The machine publishes it, the CRD's schema is made from it, rows for lists and pages are taken from
it, and adapters read an object's status back through `read`. `memory` is the machine's own: what
others need to know of it gets a field here.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain import states

Plain = dict[str, Any]


class Condition(msgspec.Struct, frozen=True, rename="camel"):
    """One question about a rollout with its answer, as Kubernetes spells it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""


class PauseStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Who paused, why and since when."""

    by: str
    since: dt.datetime
    why: str = ""


class RolloutStatus(msgspec.Struct, frozen=True, rename="camel"):
    """Where the rollout is; `memory` is what a control plane with an empty store resumes from.

    `accepted` is the last valid spec, while a rollback may still need it; `requests` are the
    annotations that were obeyed. These are believed only under a `seal` of the operator's own.
    """

    phase: str = ""
    message: str = ""
    observed_generation: int = 0
    stable_revision: str = ""
    stable_version: str = ""
    stable_hash: str = ""
    desired_hash: str = ""
    pending_hash: str = ""
    config_hash: str = ""
    canary_revision: str = ""
    canary_version: str = ""
    canary_weight: int = 0
    primary_weight: int = 0
    baseline_weight: int = 0
    step: int = 0
    steps: int = 0
    progress: str = ""
    paused: PauseStatus | None = None
    round: int = 0
    revisions: list[str] = []
    requests: dict[str, str] = {}
    conditions: list[Condition] = []
    accepted: Plain | None = None
    memory: Plain | None = None
    seal: str = ""

    @property
    def is_resumable(self) -> bool:
        """Whether a machine that knows nothing can go on from it."""
        return bool(self.memory)

    @property
    def remembered(self) -> Plain:
        """What a successor goes by, and nobody else may have written."""
        return {"memory": self.memory, "accepted": self.accepted, "requests": self.requests}

    def plain(self) -> Plain:
        """As an object carries it: what is absent is left out, for null is no value of a field."""
        said: Plain = msgspec.to_builtins(self)
        return {name: value for name, value in said.items() if value is not None}


class Said(NamedTuple):
    """What a status says in words."""

    phase: str
    message: str
    conditions: list[Condition]


def of(state: states.Known | states.Gone, said: Said) -> RolloutStatus:
    """The status without its memory, and without what others keep in it."""
    rollout = state.rollout
    run = state.run if isinstance(state, states.Running) else None
    step = state.step + 1 if isinstance(state, states.Shifting | states.Analysing) else 0
    steps = len(run.plan) if run else 0
    halt = rollout.paused
    return RolloutStatus(
        phase=said.phase,
        message=said.message,
        observed_generation=rollout.generation,
        stable_revision=rollout.stable.revision,
        stable_version=str(rollout.stable),
        stable_hash=rollout.stable.template,
        desired_hash=rollout.desired.template,
        pending_hash=rollout.due.version.template if rollout.due else "",
        config_hash=rollout.desired.configs,
        canary_revision=run.target.revision if run else "",
        canary_version=str(run.target) if run else "",
        canary_weight=int(rollout.route.weight),
        primary_weight=int(rollout.route.split.primary),
        baseline_weight=int(rollout.route.split.baseline),
        step=step,
        steps=steps,
        progress=f"{step}/{steps}" if step else "",
        paused=PauseStatus(halt.by, halt.at, halt.why) if halt else None,
        round=rollout.serial,
        revisions=[version.revision for version in rollout.kept],
        conditions=said.conditions,
    )


def read(found: Mapping[str, Any] | None) -> RolloutStatus:
    """What an object carries, or Rejected."""
    try:
        return msgspec.convert(found or {}, RolloutStatus)
    except msgspec.ValidationError as error:
        raise errors.Rejected(
            f"cannot read status: {error}",
            hint="remove the status; the rollout then starts from what runs now",
        ) from error
