"""What is read from repositories: mistakes, attackers, hosts that are away, and secrets."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead import errors
from fairlead.areas.deployments.domain import definition
from fairlead.areas.deployments.domain.trigger.messages import (
    Check,
    FetchConfiguration,
    PublishCheck,
    Refuse,
    ReportPublished,
    Source,
    Target,
)
from fairlead.areas.deployments.requests import AwsTarget
from fairlead.areas.deployments.specs import reading, workload
from fairlead.areas.deployments.triggers import handlers
from fairlead.areas.deployments.triggers.repositories import GitHost, Repositories
from fairlead.clients.github import Account, GitHub
from fairlead.engine import outbox, service
from fairlead.engine.messages import StreamName
from tests import engines
from tests.fakes.github import TOKEN
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import COMMIT, SHOP, World, world
from tests.unit.areas.deployments.triggers.world import TARGET as STORED

BOMB = b"a0: &a0 [x, x]\n" + b"".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n".encode() for n in range(1, 12)
)
SOURCE = Source("github", "acme/shop", "refs/heads/main", COMMIT, reports=True)
TARGET = Target("prod", "shop", "a.yaml")
FETCH = FetchConfiguration(SOURCE, TARGET)
AWS = AwsTarget("", "b")


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as running:
        yield running


async def pushed(made: World) -> dict[str, str]:
    """The only target of a push, once it has ended."""
    answer = await made.send("github", payloads.github(payloads.push(COMMIT)))
    found = await made.trigger(answer.json()["trigger"])
    run: dict[str, str] = found["runs"][0]
    return run


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (b"name: [oops", "deploy/shop.yaml:1:12: not YAML or JSON"),
        (b"name: shop\nruntime: []\n", "deploy/shop.yaml:2:1: runtime"),
        (BOMB, "more than 100000 parts"),
        (b"\xff\xfe", "not a text in UTF-8"),
        (b"#" * (256 * 1024 + 1), "larger than 262144 bytes"),
        (b"name: till\n", "describes another application: till"),
        (b"name: shop\nenvironment: staging\n", "environment"),
        (
            b"name: shop\ndatabases:\n- {name: a, postgres: {server_group: theirs}}\n",
            "deploy/shop.yaml:3:24: databases[0].postgres.server_group: unknown server group",
        ),
        (
            b"name: shop\nblobstores:\n- {name: a, ref: {bucket_name: theirs}}\n",
            "deploy/shop.yaml:3:19: blobstores[0].ref.bucket_name: not a shared bucket of prod",
        ),
        (
            b"name: shop\nworkload: {port: 8080}\n",
            "deploy/shop.yaml:2:1: workload: beside a cluster, which runs containers",
        ),
        (None, f"no such file at {COMMIT[:12]}: deploy/shop.yaml"),
    ],
    ids=[
        *("broken", "unknown field", "bomb", "no text", "large"),
        *("another's application", "another's environment", "another's server"),
        *("another's bucket", "a workload", "missing"),
    ],
)
async def test_a_file_that_cannot_be_deployed_is_refused_with_its_reason(
    made: World, file: bytes | None, said: str
) -> None:
    key = ("acme/shop", COMMIT, "deploy/shop.yaml")
    if file is None:
        del made.github.files[key]
    else:
        made.github.files[key] = file

    run = await pushed(made)

    assert run["progress"] == "REFUSED"
    assert said in run["reason"]
    # Nothing is half made, and the stack can be used.
    assert await made.streams("deployment") == []
    assert [each["state"] for each in made.github.statuses] == ["pending", "failure"]
    made.github.files[key] = SHOP
    again = await made.send("github", payloads.github(payloads.check_suite(COMMIT), "check_suite"))
    found = await made.trigger(again.json()["trigger"])
    assert found["runs"][0]["progress"] == "DONE"


@pytest.mark.parametrize(
    ("removed", "said"),
    [
        (("push-targets/prod/shop",), "the push target is gone: prod/shop"),
        (("push-targets/prod/shop", "environments/prod"), "the push target is gone: prod/shop"),
    ],
)
async def test_a_target_that_was_removed_meanwhile_deploys_nothing(
    made: World, removed: tuple[str, ...], said: str
) -> None:
    for path in removed:
        gone = await made.site.client.post(f"/api/v1/{path}/remove", json={})
        assert gone.status_code == 200
    app = reading.application({"name": "shop"})

    with pytest.raises(errors.NotFound, match=said):
        await made.site.engine.read(lambda s: handlers.configured(s, FETCH, app, AWS))


async def test_a_target_that_now_is_of_another_repository_deploys_nothing(made: World) -> None:
    await made.store("push-targets", **{**STORED, "repository": "acme/other"})
    app = reading.application({"name": "shop"})

    with pytest.raises(errors.NotFound, match="the push target is gone"):
        await made.site.engine.read(lambda s: handlers.configured(s, FETCH, app, AWS))


async def test_an_environment_that_is_missing_is_told(made: World) -> None:
    app = reading.application({"name": "shop"})
    other = definition.Store({**STORED, "environment": "lost", "kind": "push-target"}, "ann")
    await engines.tell(made.site.engine, "push-target/lost/shop", other)
    effect = FetchConfiguration(SOURCE, Target("lost", "shop", "a.yaml"))

    with pytest.raises(errors.NotFound, match="no such environment: lost"):
        await made.site.engine.read(lambda s: handlers.configured(s, effect, app, AWS))


async def test_a_push_goes_to_the_namespace_that_the_environment_names(made: World) -> None:
    here = workload.Machine("local@here", Path("/credentials"), postgres=True)
    container = {"name": "web", "image": {"name": "shop", "registry": "registry.example"}}
    app = reading.application({"name": "shop", "kubernetes": {"containers": [container]}})

    with pytest.raises(errors.Invalid, match="prod is not in Kubernetes"):
        await made.site.engine.read(lambda s: handlers.configured(s, FETCH, app, here))
    place = {"queue": "kubernetes@east", "namespace": "shops"}
    await made.store("environments", full_name="prod", cluster_name="east", kubernetes=place)
    found, version = await made.site.engine.read(lambda s: handlers.configured(s, FETCH, app, here))

    runs = found.spec.workload
    assert runs is not None
    assert (runs.rollout, runs.queue, version) == ("shops/shop", "kubernetes@east", 2)
    assert f"registry.example/shop:{COMMIT}" in runs.content


async def test_a_run_that_fails_is_shown_at_the_commit_without_its_words(made: World) -> None:
    made.platform.exists, made.platform.fails = True, "CFUpsert"
    made.github.files["acme/shop", COMMIT, "deploy/shop.yaml"] = (
        SHOP + b"deployment_config: {quick_mode: true}\n"
    )

    run = await pushed(made)

    assert run["progress"] == "FAILED"
    last = made.github.statuses[-1]
    assert last["state"] == "failure"
    assert last["description"] == f"failed: fairlead get deployment {run['deployment']}"
    assert "no room" not in last["description"]


async def test_a_limited_host_is_asked_again_and_nothing_is_lost(made: World) -> None:
    limit = {"Retry-After": "1"}
    made.github.next_answers.append(lambda: web.Response(status=429, headers=limit))

    run = await pushed(made)

    assert run["progress"] == "DONE"
    assert made.github.statuses[-1]["state"] == "success"


async def test_no_secret_is_kept_told_or_logged(
    made: World, capsys: pytest.CaptureFixture[str]
) -> None:
    made.github.next_answers.append(lambda: web.Response(status=401))

    await pushed(made)

    kept = await made.all_that_is_kept()
    captured = capsys.readouterr()
    for secret in (payloads.SECRET, TOKEN):
        assert secret not in kept
        assert secret not in captured.out + captured.err


def away() -> Repositories:
    return Repositories(GitHub(Account("http://127.0.0.1:9")), {"gitea": GitHost("")})


def never() -> service.Engine:
    raise AssertionError("nothing was read that the store is needed for")


def context(attempt: int) -> outbox.EffectContext:
    return outbox.EffectContext(StreamName("trigger/t"), "key", attempt)


async def test_a_host_that_stays_away_refuses_at_the_last_try(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    repositories = Repositories(GitHub(Account("http://127.0.0.1:9", token)), {})
    fetch = handlers.handlers(handlers.TriggerPorts(repositories, never))[FetchConfiguration]

    async with repositories.github.open():
        with pytest.raises(errors.Unavailable):
            await fetch.perform(FETCH, context(1))
        told = await fetch.perform(FETCH, context(handlers.ATTEMPTS))

    assert isinstance(told, Refuse)
    assert "GitHub did not answer" in told.reason


async def test_what_cannot_be_published_is_told_and_not_tried_for_ever() -> None:
    publish = handlers.handlers(handlers.TriggerPorts(away(), never))[PublishCheck]
    effect = PublishCheck(SOURCE, "prod/shop", "t/prod/shop", Check.PENDING, "waits")

    told = await publish.perform(effect, context(1))

    assert isinstance(told, ReportPublished)
    assert (told.check, told.problem) == (Check.PENDING, "no token for GitHub is set")


WITH_SQL = b"""\
name: shop
databases:
- {name: orders, postgres: {server_group: main, migrations: %s}}
"""


@pytest.mark.parametrize(
    ("folder", "files", "said"),
    [
        (b"sql", {"sql/0001_a.sql": b"SELECT 1", "sql/0001_a.down.sql": b"SELECT 2"}, ""),
        (b"sql", {}, "no such file"),
        (b"sql", {"sql/0001_a.sql": b"\xff"}, "not a text in UTF-8: 0001_a.sql"),
        (b"sql", {"sql/0001_a.sql": b"a", "sql/0001_b.sql": b"b"}, "two migrations of one version"),
        (b"sql", {f"sql/{n:04}_a.sql": b"-" * 200_000 for n in range(3)}, "larger than 512 KiB"),
        (b"sql", {f"sql/{n:04}_a.sql": b"-" for n in range(301)}, "more than 300 SQL files"),
        (b"../../etc", {}, "outside of the application's folder"),
        (b"/etc", {}, "outside of the application's folder"),
    ],
    ids=["good", "missing", "no text", "twice", "large", "many", "elsewhere", "absolute"],
)
async def test_a_push_brings_the_migrations_of_its_commit(
    made: World, folder: bytes, files: dict[str, bytes], said: str
) -> None:
    made.github.files["acme/shop", COMMIT, "deploy/shop.yaml"] = WITH_SQL % folder
    for path, data in files.items():
        made.github.files["acme/shop", COMMIT, f"deploy/{path}"] = data

    run = await pushed(made)

    assert said in run["reason"]
    assert run["progress"] == ("REFUSED" if said else "DONE")
    if not said:
        (stored,) = made.platform.beside.values()
        assert "SELECT 1" in stored
        assert "SELECT 2" not in stored
