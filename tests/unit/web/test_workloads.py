"""The door for workloads: who may bring one, and what is told of it."""

import dataclasses
from pathlib import Path
from typing import Any

from fairlead import bootstrap
from fairlead.intents import tokens, workloads
from tests.unit.web import rig

SHOP = {"name": "shop", "listen": 8080, "program": {"command": ["shop"]}}


class Shelf:
    """A ground that keeps and runs nothing."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    async def keep(self, wish: workloads.Wish) -> None:
        self.kept.append(wish.revision)


async def post(site: rig.Site, body: Any, shelf: Shelf | None, **headers: str) -> Any:
    site.app.state.context = dataclasses.replace(site.context, ground=shelf)
    return await site.client.post("/api/v1/workloads", json=body, headers=headers)


async def test_a_workload_is_kept_and_its_rollout_begins(tmp_path: Path) -> None:
    shelf = Shelf()
    async with rig.site(tmp_path, bootstrap.cast()) as site:
        first = (await post(site, SHOP, shelf)).json()
        again = (await post(site, SHOP, shelf)).json()
        stream = (await site.client.get("/api/v1/streams/rollout/shop")).json()

    assert shelf.kept == [first["revision"]] * 2
    assert first["url"] == "http://127.0.0.1:8080"
    assert (first["receipt"]["events"], again["receipt"]["events"]) == (2, 0)
    assert stream["state"] == "Founding"


async def test_whoever_deploys_must_be_an_admin(tmp_path: Path) -> None:
    shelf = Shelf()
    async with rig.site(tmp_path, bootstrap.cast()) as site:
        token = await site.token(tokens.Role.OPERATOR)
        answer = await post(site, SHOP, shelf, **rig.bearer(token))

    assert answer.status_code == 403
    assert shelf.kept == []


async def test_a_wrong_workload_is_refused_with_its_path(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.cast()) as site:
        answer = await post(site, SHOP | {"strategy": {"pause": "x"}}, Shelf())

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "strategy.pause: not a time: 'x'"


async def test_a_control_plane_that_is_no_platform_says_so(tmp_path: Path) -> None:
    async with rig.site(tmp_path, bootstrap.cast()) as site:
        answer = await post(site, SHOP, None)

    assert answer.status_code == 404
    assert "runs no workloads" in answer.json()["error"]["message"]
