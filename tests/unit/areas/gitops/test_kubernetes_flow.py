"""The document's flow on the fake API server: create, modify, delete, again under one name."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from fairlead.areas.gitops.domain.messages import FINALIZER
from fairlead.areas.gitops.kubernetes.kinds import DEPLOYMENTS, SYNC
from fairlead.errors import Unavailable
from fairlead.kubernetes.objects import Key, uid_of
from tests.fakes.kubernetes.server import Fault, Request
from tests.unit.areas.gitops.rig import (
    SPACE,
    Rig,
    at,
    condition,
    config_map,
    deployment,
    failed,
    operating,
    rigged,
)


@pytest.fixture
async def idle(tmp_path: Path) -> AsyncIterator[Rig]:
    """Nobody operates yet."""
    async with rigged(tmp_path) as made:
        yield made


@pytest.fixture
async def rig(idle: Rig, tmp_path: Path) -> AsyncIterator[Rig]:
    async with operating(tmp_path / "state", idle.connection, SPACE):
        yield idle


@pytest.mark.requirement("gitops 10")
async def test_a_deployment_is_created_modified_and_deleted(rig: Rig) -> None:
    first = rig.commit(
        {"deploy/a.yaml": config_map("a", color="red"), "deploy/b.yaml": config_map("b")}
    )
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where))

    shown = await rig.until(at(first))

    assert shown["status"]["health"]["status"] == "Healthy"
    assert [one["name"] for one in shown["status"]["resources"]] == ["a", "b"]
    assert condition(shown, "ErrorOccurred")["reason"] == "ErrorOccurredResolved"
    assert (await rig.config_map("a") or {})["data"] == {"color": "red"}

    second = rig.commit({"deploy/a.yaml": config_map("a", color="blue"), "deploy/b.yaml": None})
    change = {"spec": {"source": {"targetRevision": second}}}
    await rig.hand.patch(DEPLOYMENTS, Key(SPACE, "shop"), change)

    await rig.until(at(second))
    assert (await rig.config_map("a") or {})["data"] == {"color": "blue"}
    assert await rig.config_map("b") is None

    await rig.hand.delete(DEPLOYMENTS, Key(SPACE, "shop"))

    await rig.until_gone("a")


@pytest.mark.requirement("gitops 14")
async def test_one_made_again_under_its_name_is_a_deletion_and_a_creation(rig: Rig) -> None:
    commit = rig.commit({"deploy/a.yaml": config_map("a"), "other/b.yaml": config_map("b")})
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where))
    first = await rig.until(at(commit))

    await rig.hand.delete(DEPLOYMENTS, Key(SPACE, "shop"))
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where, source={"path": "other"}))

    second = await rig.until(at(commit))
    assert uid_of(second) != uid_of(first)
    await rig.until_gone("a")
    assert await rig.config_map("b") is not None


async def test_a_finalizer_of_the_user_holds_the_object_until_all_is_gone(rig: Rig) -> None:
    commit = rig.commit({"deploy/a.yaml": config_map("a")})
    made = deployment(rig.where)
    made["metadata"]["finalizers"] = [FINALIZER]
    await rig.hand.create(DEPLOYMENTS, made)
    await rig.until(at(commit))

    await rig.hand.delete(DEPLOYMENTS, Key(SPACE, "shop"))

    await rig.until_let_go()
    assert await rig.config_map("a") is None


@pytest.mark.requirement("gitops 16")
async def test_what_cannot_be_done_is_a_condition_until_it_can(rig: Rig) -> None:
    rig.commit({"deploy/a.yaml": config_map("a")})
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where, source={"path": "/"}))
    refused = await rig.until(failed)
    change = {"spec": {"source": {"path": "none"}}}
    await rig.hand.patch(DEPLOYMENTS, Key(SPACE, "shop"), change)
    missing = await rig.until(lambda obj: "none" in condition(obj, "ErrorOccurred")["message"])
    commit = rig.commit({"none/a.yaml": config_map("a")})

    found = await rig.until(at(commit))

    assert condition(refused, "ErrorOccurred")["message"] == "spec.source.path cannot be '/'"
    assert "no such file" in condition(missing, "ErrorOccurred")["message"]
    assert condition(found, "ErrorOccurred")["reason"] == "ErrorOccurredResolved"


async def test_two_deployments_do_not_fight_for_one_object(rig: Rig) -> None:
    commit = rig.commit({"deploy/a.yaml": config_map("a"), "other/a.yaml": config_map("a", b="c")})
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where))
    await rig.until(at(commit))

    await rig.hand.create(DEPLOYMENTS, deployment(rig.where, "second", source={"path": "other"}))

    second = await rig.until(failed, "second")
    told = "ConfigMap a belongs to another GitOpsDeployment"
    assert told in condition(second, "ErrorOccurred")["message"]
    assert at(commit)(await rig.get())


async def test_a_manual_deployment_is_synced_when_somebody_asks(rig: Rig) -> None:
    commit = rig.commit({"deploy/a.yaml": config_map("a")})
    await rig.hand.create(DEPLOYMENTS, deployment(rig.where, type="manual"))
    compared = await rig.until(lambda obj: (obj.get("status") or {}).get("resources"))
    before = await rig.config_map("a")

    asked = {"metadata": {"annotations": {SYNC: "1"}}}
    await rig.hand.patch(DEPLOYMENTS, Key(SPACE, "shop"), asked)

    await rig.until(at(commit))
    assert (before, compared["status"]["sync"]["status"]) == (None, "OutOfSync")
    assert await rig.config_map("a") is not None


async def test_an_operator_with_an_empty_store_goes_on_from_the_status(
    idle: Rig, tmp_path: Path
) -> None:
    first = idle.commit({"deploy/a.yaml": config_map("a"), "deploy/b.yaml": config_map("b")})
    await idle.hand.create(DEPLOYMENTS, deployment(idle.where))
    async with operating(tmp_path / "first", idle.connection, SPACE):
        await idle.until(at(first))
    second = idle.commit({"deploy/b.yaml": None})
    before = len(idle.server.writes)

    async with operating(tmp_path / "second", idle.connection, SPACE):
        await idle.until(at(second))

        assert await idle.config_map("b") is None
        assert not [one for one in idle.server.writes[before:] if "configmaps/a" in one.path]
        await idle.hand.delete(DEPLOYMENTS, Key(SPACE, "shop"))
        await idle.until_gone("a")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_the_flow_holds_while_a_fifth_of_all_calls_fails_and_the_operator_restarts(
    idle: Rig, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)

    def fails(request: Request) -> bool:
        return request.query.get("fieldManager") != "hand" and chance.random() < 0.2

    async def through_lives(done: Callable[[], Awaitable[object]]) -> bool:
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(TimeoutError):
                    async with operating(tmp_path / "state", idle.connection, SPACE):
                        async with asyncio.timeout(chance.uniform(0.4, 1.0)):
                            return await until(done)

    first = idle.commit({"deploy/a.yaml": config_map("a"), "deploy/b.yaml": config_map("b")})
    await idle.hand.create(DEPLOYMENTS, deployment(idle.where))
    idle.server.faults.append(Fault(500, times=10**6, only=fails))

    await through_lives(partial(idle.is_at, first))
    second = idle.commit({"deploy/b.yaml": None})
    change = {"spec": {"source": {"targetRevision": "main"}}}
    await until(partial(idle.hand.patch, DEPLOYMENTS, Key(SPACE, "shop"), change))
    await through_lives(partial(idle.is_at, second))
    assert await until(partial(idle.lacks, "b"))
    idle.server.faults.clear()
    await idle.hand.delete(DEPLOYMENTS, Key(SPACE, "shop"))
    idle.server.faults.append(Fault(500, times=10**6, only=fails))
    await through_lives(partial(idle.lacks, "a"))


async def until(done: Callable[[], Awaitable[object]]) -> bool:
    """Asked again after a fault, which the hand meets as well."""
    while True:
        with contextlib.suppress(Unavailable):
            if await done():
                return True
        await asyncio.sleep(0.05)
