"""The operator and bad input: told by a condition and an Event, and nobody else suffers."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.kubernetes import rbac
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.config import Connection
from tests.cluster import client
from tests.cluster import space as spaces
from tests.cluster.proxy import Proxy
from tests.cluster.space import Space
from tests.cluster.test_operator import condition, is_ready
from tests.operator.sample_kind import KIND, bundle
from tests.operator.workers import working
from tools.cluster import control_plane

pytestmark = pytest.mark.cluster

LONGEST = "n" * 253


async def warnings(admin: client.Client, space: Space, reason: str) -> list[str]:
    """The names of the objects that an Event of this reason tells of; told in the background."""
    where = space.path("events", api="events.k8s.io/v1")
    async with admin.watch(where) as events:
        async for event in events:
            told = event["object"]
            if told["reason"] == reason and told["type"] == "Warning":
                return [told["regarding"]["name"]]
    return []


@pytest.mark.parametrize(
    ("name", "spec", "found"),
    [
        ("smuggler", {"cargo": "contraband"}, ("Accepted", "Rejected", "not carried")),
        ("whale", {"cargo": "x" * 1_100_000}, ("Accepted", "Rejected", "1048576")),
        ("shoal", {"cargo": "x" * 600_000}, ("Accepted", "Rejected", "1048576")),
        (LONGEST, {}, ("Ready", "Rejected", "must be no more than 253")),
    ],
    ids=["refused", "huge", "huge-effect", "longest-name"],
)
async def test_what_cannot_be_is_told_and_others_go_on(
    admin: client.Client,
    bundles: str,
    space: Space,
    operator: Connection,
    *,
    name: str,
    spec: dict[str, Any],
    found: tuple[str, str, str],
    tmp_path: Path,
) -> None:
    type_, reason, said = found
    await admin.create(bundles, bundle(space.name, name, **spec))
    await admin.create(bundles, bundle(space.name, "north"))

    async with working(operator, space.name, tmp_path) as running:
        bad = await admin.wait_for(
            f"{bundles}/{name}", lambda obj: condition(obj, type_) == ("False", reason)
        )
        told = await warnings(admin, space, reason)
        await admin.wait_for(f"{bundles}/north", is_ready)
        await running.settled()
        before = running.requests.copy()
        running.reconcile_all()
        await running.settled()
        again = running.requests - before

    conditions = bad["status"]["conditions"]
    assert said in next(one["message"] for one in conditions if one["type"] == type_)
    assert told == [name]
    assert again.total() == 0


async def test_a_corrected_object_is_accepted_again(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await admin.create(bundles, bundle(space.name, "north"))
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        await admin.patch(f"{bundles}/north", {"spec": {"cargo": "contraband"}})
        await admin.wait_for(
            f"{bundles}/north", lambda obj: condition(obj, "Accepted")[0] == "False"
        )
        await admin.patch(f"{bundles}/north", {"spec": {"cargo": "tea"}})
        fine = await admin.wait_for(
            f"{bundles}/north", lambda obj: condition(obj, "Accepted")[0] == "True"
        )
        await running.until_done()

    assert is_ready(fine)


async def test_unknown_fields_do_no_harm(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    await admin.create(bundles, bundle(space.name, "north", sails=7))

    async with working(operator, space.name, tmp_path):
        found = await admin.wait_for(f"{bundles}/north", is_ready)

    assert "sails" not in found["spec"]


async def test_missing_rights_are_told_and_waited_for(
    admin: client.Client,
    cluster: control_plane.ControlPlane,
    bundles: str,
    space: Space,
    tmp_path: Path,
) -> None:
    needed = rbac.rules([KIND])
    poor = [rule for rule in needed if rule["resources"] != ["configmaps"]]
    reading = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}
    account = await space.account("poor", [*poor, reading])
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    connection = Connection(cluster.url, identity, ca=cluster.certificate_authority.read_bytes())
    await admin.create(bundles, bundle(space.name, "north"))

    async with working(connection, space.name, tmp_path):
        bad = await admin.wait_for(
            f"{bundles}/north",
            lambda obj: condition(obj, "Ready") == ("False", "Unauthorised"),
        )
        told = await warnings(admin, space, "Unauthorised")
        role = space.path("roles", "poor", api="rbac.authorization.k8s.io/v1")
        await admin.patch(role, {"rules": needed})
        fine = await admin.wait_for(f"{bundles}/north", is_ready, 60)

    assert bad["status"]["phase"] == "Refused"
    assert told == ["north"]
    assert fine["status"]["voyages"] == 1


@pytest.mark.usefixtures("controllers")
async def test_a_namespace_on_its_way_out_is_left_alone(
    admin: client.Client, bundles: str, space: Space, operator: Connection, tmp_path: Path
) -> None:
    held = bundle(space.name, "north")
    held["metadata"]["finalizers"] = ["tests.fairlead.dev/foreign"]
    await admin.create(bundles, held)
    async with working(operator, space.name, tmp_path) as running:
        await running.until_done()
        before = running.writes
        await admin.delete(client.path("v1", "namespaces", name=space.name))
        await running.until(
            lambda: any("deletionTimestamp" in one["metadata"] for one in running.bundles)
        )
        await running.settled()
        written = running.writes - before
    await admin.patch(f"{bundles}/north", {"metadata": {"finalizers": None}})

    # Children may go before their owner is marked: then each is tried once more and refused, and
    # the refusal is told.
    assert written in range(5)


@pytest.mark.usefixtures("controllers")
async def test_what_a_dying_namespace_will_not_take_is_told_and_others_go_on(
    admin: client.Client,
    cluster: control_plane.ControlPlane,
    bundles: str,
    space: Space,
    *,
    proxy: Proxy,
    tmp_path: Path,
) -> None:
    account = await space.account("everywhere", cluster_rules=rbac.rules([KIND]))
    identity = credentials.Fixed(credentials.Identity(token=account.token))
    dying = await spaces.make(admin, "dying", wait_for_account=True)
    going = dying.path("bundles", api="tests.fairlead.dev/v1")
    await admin.create(going, bundle(dying.name, "north"))
    await admin.create(bundles, bundle(space.name, "south"))

    # Nobody empties the namespace meanwhile: its objects live, and nothing may be added.
    with paused(cluster.pids["kube-controller-manager"]):
        await dying.remove()
        async with working(Connection(proxy.url, identity), "", tmp_path):
            bad = await admin.wait_for(
                f"{going}/north",
                lambda obj: condition(obj, "Ready") == ("False", "NamespaceTerminating"),
            )
            await admin.wait_for(f"{bundles}/south", is_ready)
            with pytest.raises(client.ApiError, match="403 Forbidden") as told:
                await admin.create(dying.path("events"), {"metadata": {"name": "a"}})
            tries = proxy.count("create", f".*/{dying.name}/.*")
            await asyncio.sleep(2)
            again = proxy.count("create", f".*/{dying.name}/.*") - tries

    message = bad["status"]["conditions"][0]["message"]
    assert "because it is being terminated" in message
    # No Event can be kept there, by anybody; the condition is all that a user can see.
    assert "because it is being terminated" in str(told.value)
    # A child and its Event at a time, each time later: no loop.
    assert again <= 8


@contextlib.contextmanager
def paused(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
