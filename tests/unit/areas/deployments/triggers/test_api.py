"""Deployments that people start: by commit, branch or tag, and by whom."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead.access import tokens
from tests.unit.areas.deployments.triggers.world import COMMIT, World, world
from tests.unit.web import rig

ASKED = {"target": "prod/shop", "commit": COMMIT, "id": "mine"}


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


async def start(made: World, **words: Any) -> Any:
    headers = words.pop("headers", None)
    return await made.site.client.post("/api/v1/triggers", json=words, headers=headers)


@pytest.mark.requirement(
    "deployer M1", "deployer M2", "deployer M3", "deployer M4", "deployer M5", "deployer M6"
)
@pytest.mark.parametrize("words", [{"commit": COMMIT}, {"branch": "main"}, {"tag": "v1"}])
async def test_a_person_deploys_by_commit_branch_or_tag(made: World, words: dict[str, str]) -> None:
    made.github.refs["acme/shop", "heads/main"] = COMMIT
    made.github.refs["acme/shop", "tags/v1"] = COMMIT

    answer = await start(made, target="prod/shop", **words)
    found = await made.trigger(answer.json()["trigger"])

    (run,) = found["runs"]
    deployed = await made.site.client.get(f"/api/v1/streams/deployment/{run['deployment']}")
    data = deployed.json()["data"]
    assert run["progress"] == "DONE"
    assert (data["spec"]["version"], data["by"]) == (COMMIT, "local")
    assert data["cause"].startswith("started for ")
    assert answer.json()["trigger"].startswith("prod/shop/")
    assert [each["state"] for each in made.github.statuses] == ["pending", "success"]
    # The environment as it was looked up when the file had been read.
    requested = await made.site.client.get(
        f"/api/v1/streams/trigger/{answer.json()['trigger']}/events"
    )
    told = {each["type"]: each["data"] for each in requested.json()["items"]}
    assert told["DeploymentRequested"]["environment_version"] == 1


async def test_a_branch_that_is_not_there_ends_with_the_reason(made: World) -> None:
    answer = await start(made, target="prod/shop", branch="none")
    found = await made.trigger(answer.json()["trigger"])

    (run,) = found["runs"]
    assert (run["progress"], run["reason"]) == ("REFUSED", "no heads/none in acme/shop")
    assert await made.streams("deployment") == []


async def test_the_same_request_is_taken_once(made: World) -> None:
    first = (await start(made, **ASKED)).json()
    again = (await start(made, **ASKED)).json()

    assert first["trigger"] == again["trigger"]
    assert (first["receipt"]["duplicate"], again["receipt"]["duplicate"]) == (False, True)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ({"target": "prod/shop"}, 400, "exactly one of commit, branch and tag"),
        ({**ASKED, "branch": "main"}, 400, "exactly one of"),
        ({**ASKED, "commit": "HEAD"}, 400, "commit"),
        ({"target": "prod/shop", "branch": "a b"}, 400, "branch"),
        ({**ASKED, "flags": ["quik"]}, 400, "no such flag: quik"),
        ({**ASKED, "target": "prod/shpo"}, 404, "no such push-target: prod/shpo"),
        ({**ASKED, "target": "../x"}, 400, "not a stream name"),
        ({**ASKED, "repository": "eve/shop"}, 400, "repository"),
    ],
)
async def test_what_makes_no_sense_is_refused_and_leaves_no_trace(
    made: World, words: dict[str, Any], status: int, said: str
) -> None:
    answer = await start(made, **words)

    assert answer.status_code == status
    assert said in answer.json()["error"]["message"]
    assert answer.json()["error"]["hint"]
    assert await made.streams("trigger") == []


async def test_who_may_deploy_where(made: World) -> None:
    async def bearer(role: tokens.Role, scope: str) -> dict[str, str]:
        wanted = tokens.TokenRequest(role.word, role, None, scope)
        token = await made.site.engine.write(lambda s: tokens.mint(s, wanted, datetime.now(UTC)))
        return rig.bearer(token)

    operator = await bearer(tokens.Role.OPERATOR, "")
    elsewhere = await bearer(tokens.Role.DEPLOYER, "staging")
    here = await bearer(tokens.Role.DEPLOYER, "prod")

    assert (await start(made, **ASKED, headers=operator)).status_code == 403
    assert (await start(made, **ASKED, headers=elsewhere)).status_code == 404
    allowed = await start(made, **ASKED, headers=here)
    assert allowed.status_code == 200
    # It is theirs to watch, and nobody else's.
    path = f"/api/v1/streams/trigger/{allowed.json()['trigger']}"
    assert (await made.site.client.get(path, headers=here)).status_code == 200
    assert (await made.site.client.get(path, headers=elsewhere)).status_code == 404
