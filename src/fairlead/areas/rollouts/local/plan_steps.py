"""Rollouts as steps of plans on this machine: the files that plans name, and who applies them.

plans/dev/shop/4f1c….json    a workload's file, or what else a plan brings; kept under its digest
"""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import msgspec

from fairlead import errors
from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.domain import plan_step
from fairlead.clients.processes import records
from fairlead.engine import outbox

# No part begins with a dot, so none leads out of the folder.
_KEY = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9._-]*)*")


class PlanFiles:
    """What plans bring, in the state folder: readable by its owner alone, as programs are."""

    def __init__(self, folder: Path, what: str = "plans") -> None:
        self._folder = folder / what

    def has(self, key: str) -> bool:
        return self._path(key).is_file()

    def put(self, key: str, text: str) -> None:
        path = self._path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        records.replace(path, text.encode())

    def get(self, key: str) -> str:
        path = self._path(key)
        if not path.is_file():
            raise errors.Rejected(
                f"this machine has no such file of a plan: {key[:120]}",
                hint="deploy the version again from its file",
            )
        return path.read_text()

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise errors.Rejected(
                f"not a file of a plan: {key[:120]!r}", hint="deploy the version again"
            )
        return self._folder / key


def handlers(
    target: workloads.DeployTarget, files: PlanFiles, answers: workloads.Answers | None = None
) -> outbox.Handlers:
    async def apply(
        effect: plan_step.ApplyVersion, _: outbox.EffectContext
    ) -> plan_step.Applied | plan_step.NotApplied:
        try:
            text = await asyncio.to_thread(files.get, effect.file)
            asked = workloads.read(msgspec.json.decode(text))
            if asked.name != effect.rollout:
                return plan_step.NotApplied(f"the file is of another workload: {asked.name}")
            workloads.check_answers(asked, answers)
            await target.keep(asked)
            await target.remember(asked.words)
        except errors.Unavailable:
            raise
        except errors.FairleadError as error:
            return plan_step.NotApplied(error.message)
        return plan_step.Applied(replace(asked.want, by=effect.by))

    return {plan_step.ApplyVersion: outbox.Handler(apply, attempts=20)}
