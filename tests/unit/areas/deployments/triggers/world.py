"""A whole control plane with push targets: real engine, real web app, hosts over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import msgspec

from fairlead import bootstrap
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.engine import outbox
from tests.engines import events, state
from tests.fakes.github import TOKEN, GitHubServer
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.specs import files
from tests.unit.areas.deployments.triggers.payloads import SECRET
from tests.unit.web import rig

PATIENCE = 180.0
COMMIT, NEXT = "c" * 40, "e" * 40
SHOP = b"name: shop\nruntimes:\n- name: web\n  containers:\n  - {name: app, image: {name: shop}}\n"
TARGET = {
    "environment": "prod",
    "application": "shop",
    "repository": "acme/shop",
    "path": "deploy/shop.yaml",
    "branches": ["main", "release/*"],
    "tags": ["v*"],
}


@dataclass
class World:
    """What a test asks, and what it looks at afterwards."""

    site: rig.Site
    github: GitHubServer
    platform: RecordedPlatform
    folder: Path
    logged: list[str] = field(default_factory=list)

    async def send(self, provider: str, sent: dict[str, Any]) -> httpx.Response:
        return await self.site.client.post(f"/hooks/{provider}", **sent)

    async def store(self, kind: str, **content: Any) -> None:
        answer = await self.site.client.post(f"/api/v1/{kind}", json=content)
        assert answer.status_code == 200, answer.text

    async def trigger(self, name: str) -> dict[str, Any]:
        """The trigger once all of its targets have ended, and its host was told."""
        found: dict[str, Any] = {}

        async def over() -> bool:
            found.update(await state(self.site.engine, f"trigger/{name}"))
            done = ("DONE", "FAILED", "REFUSED")
            return all(run["progress"] in done and not run["telling"] for run in found["runs"])

        # Woken by changes: a look after another without a pause starves the writer on a busy
        # machine, and a push for fifty targets is some hundred commits.
        with self.site.engine.watch() as signal:
            async with asyncio.timeout(PATIENCE):
                while not await over():
                    await self.site.engine.wait(signal, timedelta(seconds=0.2))
        return found

    async def events(self, stream: str) -> list[str]:
        return await events(self.site.engine, stream)

    async def streams(self, machine: str) -> list[str]:
        found = await self.site.client.get("/api/v1/streams", params={"machine": machine})
        return sorted(each["name"] for each in found.json()["items"])

    async def all_that_is_kept(self) -> str:
        """Every event and every stream, as text."""
        feed = await self.site.client.get("/api/v1/feed", params={"limit": 500})
        streams = await self.site.client.get("/api/v1/streams", params={"limit": 500})
        shown = msgspec.json.encode([self.github.statuses, list(self.github.runs.values())])
        return feed.text + streams.text + shown.decode()


@contextlib.asynccontextmanager
async def world(
    folder: Path,
    git_url: str = "",
    performed: outbox.Handlers | None = None,
    cluster: dict[str, Any] = files.CLUSTER,
) -> AsyncIterator[World]:
    """With a cluster, an environment and one push target."""
    for name, text in (("secret", SECRET), ("token", TOKEN)):
        (folder / name).write_text(text)
    async with GitHubServer().serving() as github:
        chosen = bootstrap.installation((DEPLOYMENTS,)).settings(
            {
                "FAIRLEAD_DEPLOYMENTS_GITHUB_URL": github.url,
                "FAIRLEAD_DEPLOYMENTS_GITHUB_TOKEN_FILE": str(folder / "token"),
                "FAIRLEAD_DEPLOYMENTS_GITHUB_SECRET_FILE": str(folder / "secret"),
                "FAIRLEAD_DEPLOYMENTS_GITLAB_SECRET_FILE": str(folder / "secret"),
                "FAIRLEAD_DEPLOYMENTS_GITLAB_URL": git_url,
                "FAIRLEAD_AWS_BUCKET": "templates",
            }
        )
        platform = RecordedPlatform(slow=False)
        given = bootstrap.with_platforms(chosen, bootstrap.installation((DEPLOYMENTS,)))
        # What performs the steps is another's; triggers are what is tried.
        served = performed or platform.handlers()
        given = replace(given, queues={**given.queues, "aws@default": served})
        async with rig.site(folder, given) as site, given.in_background(site.engine):
            made = World(site, github, platform, folder)
            await made.store("clusters", **cluster)
            await made.store("environments", full_name="prod", cluster_name="east")
            await made.store("push-targets", **TARGET)
            github.files["acme/shop", COMMIT, "deploy/shop.yaml"] = SHOP
            yield made
