"""The door for workloads: who may bring one, and what is told of it."""

import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.access import tokens
from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.domain import coordination
from fairlead.areas.rollouts.domain import messages as rollout
from fairlead.checks.spec import Check
from fairlead.engine import messages, visibility
from fairlead.engine.store import protocol
from fairlead.web.services import Services
from tests.unit.web import rig

SHOP = {"name": "shop", "listen": 8080, "program": {"command": ["shop"]}}


class FakeTarget:
    """A ground that keeps and runs nothing."""

    queue = "local@other"

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.words: dict[str, workloads.WorkloadWords] = {}

    async def keep(self, request: workloads.DeployRequest) -> None:
        self.kept.append(request.revision)

    async def remember(self, words: workloads.WorkloadWords) -> None:
        self.words[workloads.full_name(words)] = words

    async def deployed(self, name: str) -> workloads.WorkloadWords | None:
        return self.words.get(name)


async def post(site: rig.Site, body: Any, fake_target: FakeTarget | None, **headers: str) -> Any:
    site.app.state.context = dataclasses.replace(
        site.context,
        services=Services({workloads.DEPLOY_TARGET: fake_target} if fake_target else None),
    )
    return await site.client.post("/api/v1/workloads", json=body, headers=headers)


async def test_a_workload_is_kept_and_its_rollout_begins(tmp_path: Path) -> None:
    fake_target = FakeTarget()
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        first = (await post(site, SHOP, fake_target)).json()
        again = (await post(site, SHOP, fake_target)).json()
        stream = (await site.client.get("/api/v1/streams/rollout/shop")).json()

    assert fake_target.kept == [first["revision"]] * 2
    assert first["url"] == "http://127.0.0.1:8080"
    assert (first["receipt"]["events"], again["receipt"]["events"]) == (2, 0)
    assert stream["state"] == "Initializing"


async def test_checks_that_nobody_can_answer_are_refused_before_anything_is_kept(
    tmp_path: Path,
) -> None:
    def answers(check: Check, name: str) -> list[tuple[str, str]]:
        return [("query", f"nobody answers {name}; ask ann")] if "no" in check.query else []

    checks = [{"name": "a", "query": "yes"}, {"name": "b", "gate": "http://no"}]
    fake_target = FakeTarget()
    known = Services({workloads.DEPLOY_TARGET: fake_target, workloads.ANSWERS: answers})
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        site.app.state.context = dataclasses.replace(site.context, services=known)
        answer = await site.client.post("/api/v1/workloads", json=SHOP | {"checks": checks})

    (problem,) = answer.json()["error"]["problems"]
    assert (answer.status_code, fake_target.kept) == (400, [])
    assert problem["path"] == "checks[1].gate"
    assert (problem["message"], problem["hint"]) == ("nobody answers shop", "ask ann")


async def test_what_was_deployed_last_can_be_compared(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        before = await site.client.get("/api/v1/workloads/shop")
        await post(site, SHOP | {"version": "v2"}, FakeTarget())
        after = await site.client.get("/api/v1/workloads/shop")
        unknown = await site.client.get("/api/v1/workloads/none")

    assert (before.status_code, unknown.status_code) == (404, 404)
    whole = after.json()["whole"]
    assert (whole["version"], whole["replicas"], whole["metricsPort"]) == ("v2", 1, None)


async def test_to_deploy_takes_a_role_between_operator_and_admin(tmp_path: Path) -> None:
    fake_target = FakeTarget()
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        operator = rig.bearer(await site.token(tokens.Role.OPERATOR))
        refused = await post(site, SHOP, fake_target, **operator)
        read = await site.client.get("/api/v1/workloads/shop", headers=operator)
        before = list(fake_target.kept)
        deployer = rig.bearer(await site.token(tokens.Role.DEPLOYER))
        taken = await post(site, SHOP, fake_target, **deployer)

    assert (refused.status_code, read.status_code, before) == (403, 403, [])
    assert "takes the role deployer" in refused.json()["error"]["message"]
    assert taken.status_code == 200


async def scoped(site: rig.Site, project: str) -> dict[str, str]:
    request = tokens.TokenRequest(project, tokens.Role.DEPLOYER, scope=project)
    minted = await site.engine.write(lambda s: tokens.mint(s, request, datetime.now(UTC)))
    return rig.bearer(minted)


async def test_a_token_of_a_project_deploys_there_and_sees_only_its_own(tmp_path: Path) -> None:
    target = FakeTarget()
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        ours, theirs = await scoped(site, "payments"), await scoped(site, "billing")
        taken = await post(site, {**SHOP, "project": "payments"}, target, **ours)
        await post(site, {**SHOP, "project": "billing", "version": "b"}, target, **theirs)
        listed = (await site.client.get("/api/v1/rollouts", headers=ours)).json()["items"]
        diff = await site.client.get("/api/v1/workloads/payments/shop", headers=ours)
        foreign = await site.client.get("/api/v1/workloads/billing/shop", headers=ours)
        unknown = await site.client.get("/api/v1/workloads/billing/none", headers=ours)
        gone = "/api/v1/rollouts/{}/shop/delete"
        kept = await site.client.post(gone.format("billing"), json={}, headers=ours)
        deleted = await site.client.post(gone.format("payments"), json={}, headers=ours)

    assert (taken.status_code, taken.json()["name"]) == (200, "payments/shop")
    assert [each["name"] for each in listed] == ["payments/shop"]
    assert (diff.status_code, diff.json()["whole"]["project"]) == (200, "payments")
    assert foreign.status_code == unknown.status_code == 404
    assert foreign.text.replace("shop", "none") == unknown.text
    assert (kept.status_code, deleted.status_code) == (404, 200)


@pytest.mark.parametrize("project", ["", "billing"])
async def test_a_token_of_a_project_deploys_nowhere_else(tmp_path: Path, project: str) -> None:
    target = FakeTarget()
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        ours = await scoped(site, "payments")
        answer = await post(site, {**SHOP, "project": project}, target, **ours)

    assert (answer.status_code, target.kept) == (403, [])
    assert answer.json()["error"]["hint"] == "write project: payments into the file"


async def test_a_wrong_workload_is_refused_with_its_path(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        answer = await post(site, SHOP | {"strategy": {"pause": "x"}}, FakeTarget())

    assert answer.status_code == 400
    told = answer.json()["error"]
    assert (told["code"], told["message"]) == ("invalid", "strategy.pause: not a duration: 'x'")


async def test_all_mistakes_are_told_with_their_paths(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        answer = await post(site, SHOP | {"version": 1.1, "replica": 2}, FakeTarget())

    problems = answer.json()["error"]["problems"]
    assert problems[0] == {
        "path": "version",
        "message": "expected text, got a number: 1.1",
        "hint": "put it in quotes",
    }
    assert (problems[1]["path"], problems[1]["message"]) == ("replica", "unknown field")
    assert problems[1]["hint"] == "did you mean replicas?"


async def test_a_control_plane_that_is_no_platform_says_so(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        answer = await post(site, SHOP, None)

    assert answer.status_code == 404
    assert "runs no workloads" in answer.json()["error"]["message"]


async def queue_of(site: rig.Site) -> str:
    return str((await site.client.get("/api/v1/streams/rollout/shop")).json()["queue"])


async def test_a_rollout_is_born_in_the_queue_of_its_machine(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await post(site, SHOP, FakeTarget())
        before = await queue_of(site)
        # As it was before there were queues.
        await site.client.post("/api/v1/streams/rollout/shop/queue", json={"queue": ""})
        await post(site, SHOP, FakeTarget())
        after = await queue_of(site)

    assert before == after == FakeTarget.queue


async def test_a_workload_of_another_machine_is_refused_until_it_is_gone(tmp_path: Path) -> None:
    here, there = FakeTarget(), FakeTarget()
    there.queue = "local@there"
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        await post(site, SHOP, here)
        running = await post(site, SHOP, there)
        stream = coordination.rollout_stream("shop")
        await site.engine.submit(stream, rollout.Delete(), messages.command_id("delete"))
        going = await post(site, SHOP, there)
        await site.engine.write(_all_done)
        gone = await post(site, SHOP, there)
        queue = await queue_of(site)

    assert [each.status_code for each in (running, going, gone)] == [409, 409, 200]
    assert "shop runs on another machine, which serves: local@other" in running.text
    assert (len(there.kept), queue) == (1, there.queue)


def _all_done(session: protocol.Session) -> None:
    """As if the other machine had performed everything."""
    keys = [each.key for each in visibility.effects(session)]
    serves = [[each.queue, "rollout", each.type, 1] for each in visibility.effects(session)]
    claim = {"serves": json.dumps(serves), "now": 2**60, "limit": 99}
    session.rows("claim_effects", fence=99, **claim)
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        holds = [messages.Hold(key.stream, key.seq, key.n, 99) for key in keys]
        transaction.write(protocol.Writes(0, settled=holds))


async def test_a_workload_that_is_no_text_is_refused_with_the_reason(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        site.app.state.context = dataclasses.replace(
            site.context, services=Services({workloads.DEPLOY_TARGET: FakeTarget()})
        )
        headers = {"Content-Type": "application/json"}
        answer = await site.client.post(
            "/api/v1/workloads", content=b'{"name": "\xff"}', headers=headers
        )

    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("malformed JSON: 'utf-8' codec")


async def test_a_duration_without_bound_is_refused_with_its_field(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.installation()) as site:
        answer = await post(site, {**SHOP, "deadline": "999999999d"}, FakeTarget())

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "deadline: longer than 366 d: 999999999d"
