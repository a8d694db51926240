"""What is stored: who may edit it, what is refused, and how versions grow."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.access import tokens
from tests.unit.areas.deployments.specs import files
from tests.unit.areas.deployments.specs.test_target import TARGET
from tests.unit.web import rig

PROD = {"full_name": "prod", "cluster_name": "east"}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, bootstrap.installation()) as running:
        yield running


async def stored(site: rig.Site, **headers: str) -> None:
    for path, body in (
        ("clusters", files.CLUSTER),
        ("environments", PROD),
        ("push-targets", TARGET),
    ):
        answer = await site.client.post(f"/api/v1/{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text


async def bearer(site: rig.Site, role: tokens.Role, scope: str = "") -> dict[str, str]:
    wanted = tokens.TokenRequest(f"{role.word} {scope}".strip(), role, None, scope)
    made = await site.engine.write(lambda s: tokens.mint(s, wanted, datetime.now(UTC)))
    return rig.bearer(made)


async def test_what_is_stored_is_read_again_with_every_default(site: rig.Site) -> None:
    await stored(site)

    target = (await site.client.get("/api/v1/push-targets/prod/shop")).json()
    clusters = (await site.client.get("/api/v1/clusters")).json()

    assert (target["name"], target["version"], target["by"]) == ("prod/shop", 1, "local")
    assert target["whole"] == {
        **TARGET,
        "kind": "push-target",
        "provider": "github",
        "path": "fairlead.yaml",
    }
    assert [each["name"] for each in clusters] == ["east"]


async def test_an_edit_is_a_new_version_and_the_same_again_is_none(site: rig.Site) -> None:
    await stored(site)

    again = (await site.client.post("/api/v1/environments", json=PROD)).json()
    edited = {**PROD, "deployments": {"approve": True}}
    first = await site.client.post("/api/v1/environments?expects=1", json=edited)
    second = await site.client.post("/api/v1/environments?expects=1", json=PROD)
    events = (await site.client.get("/api/v1/streams/environment/prod/events")).json()

    assert (again["revision"], again["receipt"]["events"]) == ("version 1", 0)
    assert first.json()["revision"] == "version 2"
    assert second.status_code == 409
    assert "version 2, not 1" in second.json()["error"]["message"]
    assert [each["type"] for each in events["items"]] == ["Stored", "Stored"]
    assert events["items"][1]["data"]["by"] == "local"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("environments", {"full_name": "prod", "cluster_name": "esat"}, "cluster_name"),
        ("environments", {"full_name": "Prod"}, "full_name"),
        ("push-targets", {**TARGET, "environment": "staging"}, "environment"),
        ("push-targets", {**TARGET, "repository": "x"}, "repository"),
        ("clusters", {"name": "west"}, "aws"),
    ],
)
async def test_what_makes_no_sense_is_refused_with_its_field_and_stores_nothing(
    site: rig.Site, path: str, body: dict[str, Any], field: str
) -> None:
    await site.client.post("/api/v1/clusters", json=files.CLUSTER)

    answer = await site.client.post(f"/api/v1/{path}", json=body)

    assert answer.status_code == 400
    assert answer.json()["error"]["problems"][0]["path"] == field
    assert [e["name"] for e in (await site.client.get(f"/api/v1/{path}")).json()] in ([], ["east"])


async def test_what_others_name_stays_until_they_are_gone(site: rig.Site) -> None:
    await stored(site)

    in_use = await site.client.post("/api/v1/environments/prod/remove", json={})
    first = await site.client.post("/api/v1/push-targets/prod/shop/remove", json={})
    then = await site.client.post("/api/v1/environments/prod/remove", json={})
    gone = await site.client.get("/api/v1/environments/prod")
    again = await site.client.post("/api/v1/environments/prod/remove", json={})

    assert in_use.status_code == 409
    assert "in use: prod/shop" in in_use.json()["error"]["message"]
    assert (first.status_code, then.status_code) == (200, 200)
    assert (gone.status_code, again.status_code) == (404, 404)


async def test_a_deployer_of_one_environment_edits_its_targets_and_no_others(
    site: rig.Site,
) -> None:
    admin = await bearer(site, tokens.Role.ADMIN)
    await stored(site, **admin)
    other = {"full_name": "staging"}
    await site.client.post("/api/v1/environments", json=other, headers=admin)
    scoped = await bearer(site, tokens.Role.DEPLOYER, "prod")
    operator = await bearer(site, tokens.Role.OPERATOR, "prod")
    elsewhere = {**TARGET, "environment": "staging"}

    async def post(path: str, body: dict[str, Any], headers: dict[str, str]) -> int:
        return (await site.client.post(f"/api/v1/{path}", json=body, headers=headers)).status_code

    assert await post("push-targets", {**TARGET, "branches": ["next"]}, scoped) == 200
    assert await post("push-targets", elsewhere, scoped) == 404
    assert await post("push-targets/staging/shop/remove", {}, scoped) == 404
    assert await post("push-targets", TARGET, operator) == 403
    # An environment says as whom its deployments run.
    assert await post("environments", PROD, scoped) == 403
    assert await post("environments", other, await bearer(site, tokens.Role.DEPLOYER)) == 403
    seen = (await site.client.get("/api/v1/push-targets", headers=scoped)).json()
    assert [each["name"] for each in seen] == ["prod/shop"]


async def test_nobody_stores_past_the_door(site: rig.Site) -> None:
    body = {"type": "Store", "data": {"content": {"full_name": "x"}, "by": "eve"}}

    answer = await site.client.post("/api/v1/streams/environment/x/commands", json=body)

    assert answer.status_code == 403
