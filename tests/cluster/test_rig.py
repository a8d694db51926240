"""The rig itself: what other tests of this folder rely on."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from concurrent import futures
from pathlib import Path

import aiohttp
import pytest

from fairlead import errors
from tests.cluster import client, crds
from tests.cluster import space as spaces
from tests.cluster.conftest import Connect, InstallCrds, Outage
from tests.cluster.space import Space
from tools.cluster import control_plane, parts, process

pytestmark = pytest.mark.cluster

_APPS = "apps/v1"


async def test_a_deployment_of_five_becomes_ready(
    nodes: None, admin: client.Client, space: Space
) -> None:
    await admin.create(space.path("deployments", api=_APPS), _deployment("web", replicas=5))

    ready = await admin.wait_for(
        space.path("deployments", "web", api=_APPS),
        lambda found: found.get("status", {}).get("readyReplicas") == 5,
    )

    pods = (await admin.get(space.path("pods"), labelSelector="app=web"))["items"]
    assert ready["status"]["availableReplicas"] == 5
    assert len({pod["status"]["podIP"] for pod in pods}) == 5
    assert {pod["spec"]["nodeName"] for pod in pods} == {control_plane.NODE}


async def test_a_pod_with_the_chaos_label_fails(
    nodes: None, admin: client.Client, space: Space
) -> None:
    chaos = "pod-container-running-failed.stage.kwok.x-k8s.io"
    pod = _pod("web")
    pod["metadata"]["labels"] = {chaos: "true"}
    pod["metadata"]["annotations"] = {f"{chaos}/delay": "10ms", f"{chaos}/jitter-delay": "10ms"}
    await admin.create(space.path("pods"), pod)

    failed = await admin.wait_for(
        space.path("pods", "web"), lambda found: found["status"].get("phase") == "Failed"
    )

    assert failed["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] != 0


async def test_the_garbage_collector_removes_what_a_deleted_owner_left(
    controllers: None, admin: client.Client, space: Space
) -> None:
    maps = space.path("configmaps")
    owner = await admin.create(maps, {"metadata": {"name": "owner"}})
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    owned = {"metadata": {"name": "child", "ownerReferences": [reference]}}
    await admin.create(maps, owned)
    await admin.create(maps, {"metadata": {"name": "stranger"}})

    await admin.delete(f"{maps}/owner")

    await admin.wait_until_gone(f"{maps}/child")
    assert (await admin.get(f"{maps}/stranger"))["metadata"]["name"] == "stranger"


async def test_restarted_controllers_collect_what_objects_of_a_new_kind_owned(
    cluster: control_plane.ControlPlane,
    controllers: None,
    install_crds: InstallCrds,
    admin: client.Client,
    space: Space,
) -> None:
    await install_crds("gateway")
    cluster.restart_controllers()
    api = "gateway.networking.k8s.io/v1"
    routes = space.path("httproutes", api=api)
    kind = {"apiVersion": api, "kind": "HTTPRoute"}
    route = await admin.create(routes, {**kind, "metadata": {"name": "owner"}, "spec": {}})
    reference = {**kind, "name": "owner", "uid": route["metadata"]["uid"]}
    owned = {"metadata": {"name": "child", "ownerReferences": [reference]}}
    await admin.create(space.path("configmaps"), owned)

    await admin.delete(f"{routes}/owner")

    await admin.wait_until_gone(space.path("configmaps", "child"))


async def test_an_account_may_do_what_its_rules_say_and_no_more(
    connect: Connect, space: Space
) -> None:
    may_read = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}
    reader = await space.account("reader", [may_read])
    stranger = await space.account("stranger")
    as_reader = await connect(reader.token)
    as_stranger = await connect(stranger.token)

    listed = await as_reader.get(space.path("configmaps"))
    with pytest.raises(client.ApiError) as reader_refused:
        await as_reader.create(space.path("configmaps"), {"metadata": {"name": "mine"}})
    with pytest.raises(client.ApiError) as stranger_refused:
        await as_stranger.get(space.path("configmaps"))

    assert listed["kind"] == "ConfigMapList"
    assert reader_refused.value.status == 403
    assert f'User "{stranger.user}" cannot list' in stranger_refused.value.body["message"]


async def test_rules_for_everywhere_hold_outside_the_namespace(
    connect: Connect, admin: client.Client, space: Space
) -> None:
    may_list = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}
    account = await space.account("operator", cluster_rules=[may_list])
    as_operator = await connect(account.token)

    listed = await as_operator.get("/api/v1/namespaces")

    assert space.name in {one["metadata"]["name"] for one in listed["items"]}


async def test_a_person_with_a_certificate_is_known_by_name_and_groups(
    cluster: control_plane.ControlPlane, tmp_path: Path
) -> None:
    alice = cluster.certificate_for("alice", ["developers"])
    user = {"client-certificate": str(alice.certificate), "client-key": str(alice.key)}
    config = cluster.write_kubeconfig(tmp_path / "kubeconfig", user)

    answer = await _kubectl(cluster, config, "auth", "whoami", "-o", "json")

    known = json.loads(answer)["status"]["userInfo"]
    assert known["username"] == "alice"
    assert "developers" in known["groups"]


async def test_a_call_without_a_token_is_refused(connect: Connect, space: Space) -> None:
    nobody = await connect("")

    with pytest.raises(client.ApiError) as refused:
        await nobody.get(space.path("configmaps"))

    assert refused.value.status == 403


async def test_two_spaces_do_not_see_each_other(
    controllers: None, admin: client.Client, space: Space
) -> None:
    other = await spaces.make(admin, "other", wait_for_account=True)
    await admin.create(space.path("configmaps"), {"metadata": {"name": "mine"}})

    seen = await admin.get(other.path("configmaps"))

    assert "mine" not in {one["metadata"]["name"] for one in seen["items"]}
    await other.remove()


@pytest.mark.slow  # Kubernetes itself waits 5 seconds before it empties a namespace
async def test_a_removed_space_takes_everything_with_it(
    controllers: None, admin: client.Client
) -> None:
    gone = await spaces.make(admin, "gone", wait_for_account=True)
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    await gone.account("operator", cluster_rules=rules)
    await admin.create(gone.path("configmaps"), {"metadata": {"name": "mine"}})

    await gone.remove()

    await admin.wait_until_gone(f"/api/v1/namespaces/{gone.name}", seconds=60)
    roles = await admin.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert not [one for one in roles["items"] if gone.name in one["metadata"]["name"]]


@pytest.mark.parametrize("crash", [False, True], ids=["asked", "killed"])
async def test_a_restarted_api_server_keeps_objects_and_address(
    cluster: control_plane.ControlPlane,
    admin: client.Client,
    space: Space,
    outage: Outage,
    *,
    crash: bool,
) -> None:
    made = await admin.create(space.path("configmaps"), {"metadata": {"name": "kept"}})
    url, pid = cluster.url, cluster.pids["kube-apiserver"]

    async with outage(crash=crash):
        with pytest.raises(aiohttp.ClientError):
            await admin.get(space.path("configmaps", "kept"))

    found = await admin.get(space.path("configmaps", "kept"))
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert cluster.url == url
    assert cluster.pids["kube-apiserver"] != pid


@pytest.mark.parametrize(
    ("project", "kind"),
    [
        ("istio", "virtualservices.networking.istio.io"),
        ("gateway", "httproutes.gateway.networking.k8s.io"),
        ("argocd", "applications.argoproj.io"),
    ],
)
async def test_kinds_of_other_projects_are_served(
    project: crds.Project, kind: str, install_crds: InstallCrds, admin: client.Client
) -> None:
    installed = await install_crds(project)
    again = await install_crds(project)

    resource, group = kind.split(".", 1)
    groups = await admin.get(f"/apis/{group}")
    served = await admin.get(f"/apis/{groups['preferredVersion']['groupVersion']}")
    assert kind in installed
    assert again == installed
    assert resource in {one["name"] for one in served["resources"]}


async def test_the_api_server_says_the_pinned_version(
    cluster: control_plane.ControlPlane, admin: client.Client
) -> None:
    if os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("the programs are not ours")

    version = await admin.get("/version")

    assert version["gitVersion"] == parts.KUBERNETES
    assert f"k8s.io/kubernetes {parts.KUBERNETES}\n" in (parts.RIG / "go.mod").read_text()


def test_a_killed_process_leaves_no_server_behind(nodes: None, tmp_path: Path) -> None:
    script = f"""
import json, pathlib, signal
from tools.cluster import control_plane, parts
plane = control_plane.ControlPlane(parts.find(), pathlib.Path({str(tmp_path)!r}))
plane.start()
plane.start_nodes()
print(json.dumps(plane.pids), flush=True)
signal.pause()
"""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pids: dict[str, int] = json.loads(owner.stdout.readline())
        servers = {os.pidfd_open(pid): name for name, pid in pids.items()}

        owner.send_signal(signal.SIGKILL)

        alive = _wait_for_ends(servers, seconds=20)
    servers_of_ours = {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
    }
    assert set(pids) == servers_of_ours
    assert not alive


def test_a_server_is_never_started_from_a_side_thread(tmp_path: Path) -> None:
    with (
        futures.ThreadPoolExecutor() as side,
        pytest.raises(errors.Rejected, match="main thread"),
    ):
        side.submit(process.Process, ["sleep", "60"], tmp_path / "log").result()


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    server = process.Process(["sh", "-c", "echo no such flag; exit 3"], tmp_path / "log")

    with pytest.raises(errors.Unavailable, match="sh ended with code 3: no such flag"):
        server.wait_until(lambda: False, seconds=20)


def _wait_for_ends(servers: dict[int, str], seconds: float) -> set[str]:
    """The names of those that still run; the kernel tells when a process file can be read."""
    waiting = select.poll()
    for number in servers:
        waiting.register(number, select.POLLIN)
    left = dict(servers)
    while left and (ended := waiting.poll(seconds * 1000)):
        for number, _ in ended:
            waiting.unregister(number)
            os.close(number)
            del left[number]
    return set(left.values())


async def _kubectl(cluster: control_plane.ControlPlane, config: Path, *words: str) -> bytes:
    program = str(cluster.parts.program("kubectl"))
    running = await asyncio.create_subprocess_exec(
        program, f"--kubeconfig={config}", *words, stdout=subprocess.PIPE
    )
    answer, _ = await running.communicate()
    assert running.returncode == 0
    return answer


def _deployment(name: str, replicas: int) -> client.Json:
    labels = {"app": name}
    pod = _pod(name)
    return {
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def _pod(name: str) -> client.Json:
    container = {"name": name, "image": "example.test/shop:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}
