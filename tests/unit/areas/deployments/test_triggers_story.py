"""Pushes from the webhook to the end of their deployments: on a real git server, cut anywhere."""

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from fairlead.area import parts
from fairlead.areas.deployments.area import DEPLOYMENTS
from fairlead.areas.deployments.domain.definition import Store
from fairlead.areas.deployments.domain.ref import TakePush
from fairlead.areas.deployments.domain.trigger.messages import Source, Target
from fairlead.areas.deployments.requests import AwsTarget
from fairlead.areas.deployments.triggers import handlers
from fairlead.areas.deployments.triggers.repositories import Repositories
from fairlead.clients.github import Account, GitHub
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id, stream_name
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests import contents
from tests.engines import events, state, until
from tests.fakes.github import GitHubServer
from tests.unit.areas.deployments.recorded import RecordedPlatform
from tests.unit.areas.deployments.specs import files
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import COMMIT, PATIENCE, SHOP, TARGET, world

MACHINES = parts.machines([parts.core(DEPLOYMENTS)])


async def test_a_push_to_a_real_git_server_is_deployed_and_so_is_a_branch_by_hand(
    tmp_path: Path,
) -> None:
    (tmp_path / "git" / "acme").mkdir(parents=True)
    work = contents.repository(tmp_path / "git" / "acme" / "work")
    commit = contents.tag(work, "v1", {"deploy/shop.yaml": SHOP})
    contents.git(tmp_path / "git", "clone", "-q", "--bare", str(work), "acme/shop.git")
    with contents.serving_git(tmp_path / "git") as address:
        async with world(tmp_path, address.removesuffix("/.git")) as made:
            await made.store("push-targets", **TARGET, provider="gitlab")

            sent = payloads.gitlab(payloads.gitlab_push(commit))
            pushed = await made.send("gitlab", sent)
            found = await made.trigger(pushed.json()["trigger"])
            again = await made.send("gitlab", sent)
            asked = {"target": "prod/shop", "tag": "v1"}
            by_hand = await made.site.client.post("/api/v1/triggers", json=asked)
            second = await made.trigger(by_hand.json()["trigger"])

    assert pushed.status_code == 202
    assert found["runs"][0]["progress"] == "DONE"
    assert found["by"] == "gitlab:ann"
    assert again.json()["duplicate"] is True
    assert second["source"]["commit"] == commit
    assert second["runs"][0]["progress"] == "DONE"


async def test_pushes_without_times_that_come_in_another_order_end_at_the_newest(
    tmp_path: Path,
) -> None:
    (tmp_path / "git" / "acme").mkdir(parents=True)
    work = contents.repository(tmp_path / "git" / "acme" / "work")
    commits = [contents.tag(work, f"v{n}", {"deploy/shop.yaml": SHOP}) for n in range(4)]
    contents.git(tmp_path / "git", "clone", "-q", "--bare", str(work), "acme/shop.git")
    stream = "ref/gitlab:acme:shop:heads:main"
    with contents.serving_git(tmp_path / "git") as address:
        async with world(tmp_path, address.removesuffix("/.git")) as made:
            await made.store("push-targets", **TARGET, provider="gitlab")

            for before, after in ((2, 3), (0, 1), (1, 2)):
                said = payloads.gitlab_push(commits[after], before=commits[before])
                await made.send("gitlab", payloads.gitlab(said, str(after)))

            async def answered() -> bool:
                return not (await state(made.site.engine, stream))["asked"]

            await until(answered)
            head = (await state(made.site.engine, stream))["head"]
            newest = await made.trigger(f"{stream.removeprefix('ref/')}:1")
            started = await made.streams("trigger")
            heard = await made.events(stream)

    assert heard[:2] == ["Pushed", "Doubted"]
    assert head == commits[3]
    assert newest["source"]["commit"] == commits[3]
    assert len(started) == 1


@dataclasses.dataclass
class Story:
    """A push for two targets, one of whose files makes no sense; each cut has worlds of its own."""

    folder: Path
    github: GitHubServer
    client: GitHub
    platform: RecordedPlatform = dataclasses.field(default_factory=RecordedPlatform)
    count: Any = dataclasses.field(default_factory=itertools.count)

    def fresh_store(self) -> protocol.Store:
        self.platform = RecordedPlatform(slow=False)
        self.github.runs.clear()
        return sqlite.SqliteStore(self.folder / f"{next(self.count)}.db")

    def build(self, store: protocol.Store, wall: clock.Clock) -> service.Engine:
        made: list[service.Engine] = []
        aws = AwsTarget("", "templates")
        ports = handlers.TriggerPorts(Repositories(self.client, {}), lambda: made[0], aws)
        performed = {**self.platform.handlers(), **handlers.handlers(ports)}
        made.append(service.Engine(service.Parts(store, MACHINES, performed, wall=wall)))
        return made[0]

    async def act(self, engine: service.Engine) -> None:
        till = {**TARGET, "application": "till", "path": "till.yaml"}
        stored = (
            ("cluster/east", files.CLUSTER),
            ("environment/prod", {"full_name": "prod", "cluster_name": "east"}),
            ("push-target/prod/shop", TARGET),
            ("push-target/prod/till", till),
        )
        for name, content in stored:
            stream = stream_name(*name.split("/", 1))
            await engine.submit(stream, Store(content, "ann"), command_id(f"store {name}"))
        source = Source("github", "acme/shop", "refs/heads/main", COMMIT, reports=True)
        targets = (
            Target("prod", "shop", "deploy/shop.yaml"),
            Target("prod", "till", "till.yaml"),
        )
        push = TakePush("main", payloads.NONE, source, targets, "push", "github:ann")
        await engine.submit(stream_name("ref", "main"), push, command_id("hook 1"))

    async def settled(self, engine: service.Engine) -> bool:
        unsettled = await engine.read(visibility.effects)
        if unsettled:
            return False
        found = await state(engine, "trigger/main:1")
        return all(run["progress"] in ("DONE", "REFUSED") for run in found["runs"])


@pytest.mark.slow
@pytest.mark.requirement("deployer G6")
async def test_a_push_cut_at_any_commit_ends_the_same(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file = tmp_path / "app.pem"
    file.write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    served = {("acme/shop", COMMIT, "deploy/shop.yaml"): SHOP}
    async with GitHubServer(served, app_key=key.public_key()).serving() as github:
        client = GitHub(Account(github.url, app_id="7", app_key_file=file))
        story = Story(tmp_path, github, client)

        async def check(engine: service.Engine) -> None:
            found = await state(engine, "trigger/main:1")
            assert [run["progress"] for run in found["runs"]] == ["DONE", "REFUSED"]
            assert await events(engine, "ref/main") == ["Pushed"]
            assert await events(engine, "stack/prod/shop") == [
                *("Triggered", "DeploymentCompleted", "BecameAvailable")
            ]
            told = sorted(await events(engine, "trigger/main:1"))
            assert told == sorted(
                [
                    *("Started", "DeploymentRequested", "TargetRefused", "DeploymentEnded"),
                    *["CheckPublished"] * 4,
                ]
            )
            # However often it was told, each target has one check run.
            shown = {each["name"]: each["conclusion"] for each in github.runs.values()}
            assert len(github.runs) == 2
            assert shown == {"fairlead: prod/shop": "success", "fairlead: prod/till": "failure"}

        async with client.open():
            play = Play(story.fresh_store, story.build, story.act, story.settled, patience=PATIENCE)
            cuts = await crash_at_every_commit(play, check)

    assert cuts > 10
