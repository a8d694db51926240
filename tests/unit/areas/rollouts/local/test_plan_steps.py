"""Files that plans name, and how a step has one applied on this machine."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import plan_step
from fairlead.areas.rollouts.local.plan_steps import PlanFiles, handlers
from fairlead.areas.rollouts.workloads import DeployRequest, WorkloadWords
from fairlead.checks.spec import Check
from fairlead.engine import outbox

KEY = "dev/shop/4f1c.json"
FILE = {
    "name": "shop",
    "project": "dev",
    "version": "v2",
    "listen": 8080,
    "program": {"command": ["serve"]},
}


class Target:
    """A machine that keeps, or refuses with an error."""

    queue = "local@test"

    def __init__(self, refuses: errors.FairleadError | None = None) -> None:
        self.refuses = refuses
        self.kept: list[str] = []

    async def keep(self, deploy_request: DeployRequest) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.kept.append(f"kept {deploy_request.revision}")

    async def remember(self, words: WorkloadWords) -> None:
        self.kept.append(f"remembered {words.version}")

    async def deployed(self, name: str) -> WorkloadWords | None:
        raise AssertionError(name)


async def applied(files: PlanFiles, target: Target, key: str = KEY, name: str = "dev/shop") -> Any:
    handler: Any = handlers(target, files)[plan_step.ApplyVersion]
    about = outbox.EffectContext
    return await handler.perform(plan_step.ApplyVersion(name, key, "a plan"), about)


async def test_the_program_is_kept_before_its_rollout_is_asked_for_it(tmp_path: Path) -> None:
    files, target = PlanFiles(tmp_path), Target()
    files.put(KEY, json.dumps(FILE))

    answer = await applied(files, target)

    revision = answer.request.version.revision
    assert target.kept == [f"kept {revision}", "remembered v2"]
    assert (answer.request.name, answer.request.by) == ("dev/shop", "a plan")
    assert str(answer.request.version) == "v2"


async def test_what_cannot_be_applied_says_why(tmp_path: Path) -> None:
    files = PlanFiles(tmp_path)
    missing = await applied(files, Target())
    files.put(KEY, json.dumps(FILE))
    taken = Target(errors.Conflict("port already taken: 8080", hint="choose another"))

    assert "no such file of a plan" in missing.reason
    assert (await applied(files, taken)).reason == "port already taken: 8080"
    told = await applied(files, Target(), name="prod/shop")
    assert told.reason == "the file is of another workload: dev/shop"


async def test_a_version_whose_checks_nobody_answers_is_not_applied(tmp_path: Path) -> None:
    files, target = PlanFiles(tmp_path), Target()
    files.put(KEY, json.dumps(FILE | {"checks": [{"name": "a", "query": "up"}]}))

    def nobody(check: Check, name: str) -> list[tuple[str, str]]:
        return [("query", f"nobody answers {check.query} of {name}")]

    handler: Any = handlers(target, files, nobody)[plan_step.ApplyVersion]
    effect = plan_step.ApplyVersion("dev/shop", KEY, "a plan")
    answer = await handler.perform(effect, outbox.EffectContext)

    assert answer.reason == "checks[0].query: nobody answers up of dev/shop"
    assert target.kept == []


async def test_a_machine_that_does_not_answer_is_asked_again(tmp_path: Path) -> None:
    files = PlanFiles(tmp_path)
    files.put(KEY, json.dumps(FILE))

    with pytest.raises(errors.Unavailable):
        await applied(files, Target(errors.Unavailable("busy", hint="later")))


@pytest.mark.parametrize(
    "key", ["../secret", "/etc/passwd", "dev/../../x", "dev/.hidden", "", "a/"]
)
def test_no_key_leads_out_of_the_folder(tmp_path: Path, key: str) -> None:
    files = PlanFiles(tmp_path / "state")
    (tmp_path / "secret").write_text("hidden")

    for attempt in (lambda: files.get(key), lambda: files.put(key, "x")):
        with pytest.raises(errors.Rejected, match="not a file of a plan"):
            attempt()


def test_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    files = PlanFiles(tmp_path)
    files.put(KEY, "text")

    path = tmp_path / "plans" / KEY
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0
    assert (files.has(KEY), files.has("dev/shop/other.json")) == (True, False)
