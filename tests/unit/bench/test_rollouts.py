"""Benchmark `rollouts` reads its figures from outside, and finds its peer where it was built."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import canary_race, canary_rest, kwok_cluster, peers_build
from bench.contestants import canaries, canaries_argo, canaries_ours
from fairlead import errors
from fairlead.kubernetes.cache.store import Cache
from fairlead.kubernetes.objects import Key, Object, Resource
from tools.cluster import parts, process

# Does what the real one would leave behind.
_GO = """#!/bin/sh
set -e
case "$1 $2" in
"env GOVERSION") echo go9.9 ;;
"mod download") printf '{"Dir": "%s"}' "$GO_MODULES" ;;
build*) while [ "$1" != -o ]; do shift; done; echo program > "$2"; chmod +x "$2" ;;
esac
"""


@pytest.fixture
def build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A machine with a stand-in for Go, and nothing built."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(_GO)
    go.chmod(0o755)
    crds = tmp_path / "modules" / "manifests" / "crds"
    crds.mkdir(parents=True)
    (crds / "rollout-crd.yaml").write_text("kind: CustomResourceDefinition\n")
    monkeypatch.setenv("PATH", f"{go.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GO_MODULES", str(tmp_path / "modules"))
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path / "cache"))
    parts.go_version.cache_clear()
    yield tmp_path / "cache"
    parts.go_version.cache_clear()


def test_a_peer_is_built_once_and_found_by_every_clone(build_folder: Path) -> None:
    assert peers_build.argo_rollouts() is None

    folder = peers_build.build()

    found = peers_build.argo_rollouts()
    assert found is not None
    assert folder.parent == build_folder / "peers"
    assert found.program.parent == folder
    assert [file.name for file in found.crds.iterdir()] == ["rollout-crd.yaml"]


def test_without_go_a_peer_that_was_built_is_used_and_one_that_was_not_is_refused(
    build_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers_build.build()
    monkeypatch.setenv("PATH", "/nonexistent")
    parts.go_version.cache_clear()

    assert peers_build.build().parent == build_folder / "peers"

    monkeypatch.setenv("FAIRLEAD_CACHE", str(build_folder / "empty"))
    with pytest.raises(errors.Unavailable, match="go is not on PATH"):
        peers_build.build()


def test_the_ledger_counts_what_the_api_server_wrote_down_watches_aside(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    request_count = kwok_cluster.RequestCount(log)
    assert request_count.total() == 0

    lines = [
        _line("create", "replicasets"),
        _line("watch", "pods"),
        _line("patch", "rollouts", "status"),
    ]
    text = "".join(lines)
    log.write_text(text[:-20])
    assert request_count.total() == 1

    # The rest of a line that was read half is the rest of that line.
    log.write_text(text)
    assert request_count.total() == 2
    assert request_count.asked == {"create replicasets": 1, "patch rollouts/status": 1}


def test_a_racer_is_measured_by_the_kernel_s_own_account(tmp_path: Path) -> None:
    busy = "while :; do :; done"
    server = process.Process(["/bin/sh", "-c", busy], tmp_path / "log")
    try:
        racer = canary_race.Racer(server)
        server.wait_until(lambda: racer.cpu_seconds() > 0.05, 20)

        assert 0.1 < racer.memory_mb() < 50
        assert racer.memory_mb("VmHWM") >= racer.memory_mb()
    finally:
        server.kill()


async def test_all_are_there_when_the_last_one_says_so(tmp_path: Path) -> None:
    cache = Cache(canaries_argo.ROLLOUTS)
    sight = canary_race.WatchCount(cache)
    server = process.Process(["/bin/sleep", "60"], tmp_path / "log")
    racer = canary_race.Racer(server)
    argo = canaries_argo.ArgoRollouts(peers_build.ArgoRollouts(Path("p"), Path("c")))
    try:
        cache.put(_rollout("a", 1, "Healthy"))
        sight.expect([Key("bench", "a"), Key("bench", "b")], argo.is_idle)

        with pytest.raises(Exception, match="1 not there in time"):
            await sight.all_there(racer, 0.01)
        cache.put(_rollout("b", 2, "Healthy"))

        await sight.all_there(racer, 10)
    finally:
        server.kill()
    sight.expect([Key("bench", "c")], argo.is_idle)
    with pytest.raises(Exception, match="it ended"):
        await sight.all_there(racer, 10)


def test_argo_rollouts_is_paused_only_by_a_status_about_its_newest_spec() -> None:
    argo = canaries_argo.ArgoRollouts(peers_build.ArgoRollouts(Path("p"), Path("c")))
    paused = {"updatedReplicas": 1, "pauseConditions": [{"reason": "CanaryPauseStep"}]}
    now = _rollout("a", 3, "Paused", **paused)
    before = _rollout("a", 3, "Paused", **paused, observedGeneration="0")

    assert argo.is_paused(now)
    assert not argo.is_paused(before)
    assert not argo.is_paused(_rollout("a", 3, "Paused"))
    assert not argo.is_idle(now)


def test_ours_is_paused_once_its_weight_is_shown_and_a_person_is_waited_for(tmp_path: Path) -> None:
    ours = canaries_ours.Operator("replicas")
    moving = {"phase": "Progressing", "canaryWeight": canaries.WEIGHT}
    there = {"phase": "AwaitingApproval", "canaryWeight": canaries.WEIGHT}
    (made,) = ours.makes("a")

    assert ours.is_idle({"status": {"phase": "Stable"}})
    assert not ours.is_paused({"status": moving})
    assert ours.is_paused({"status": there})
    assert made.body["spec"]["deploymentSpec"]["template"] == canaries.template("a")
    assert ours.change("a").body["spec"] == {"deploymentSpec": canaries.new_image()["spec"]}
    assert f"--kubeconfig={tmp_path}/k" in ours.command(tmp_path / "k", tmp_path)


def test_a_changed_image_keeps_the_rest_of_the_template() -> None:
    before = canaries.template("a")["spec"]["containers"]
    after = canaries.new_image()["spec"]["template"]["spec"]["containers"]

    assert before != after
    assert before == [after[0] | {"image": canaries.OLD}]


async def test_a_copy_says_everywhere_what_follows_from_its_own_name() -> None:
    ours = canaries_ours.Operator("replicas")
    template, revision, name = ours.spellings("canary-00000")
    meta = {"namespace": "bench", "name": name, "uid": "u1", "resourceVersion": "7"}
    said = {"memory": {"name": f"bench/{name}/u1"}, "stableHash": template}
    owner = {"metadata": meta, "spec": {"app": name}, "status": said}
    owned = {
        "kind": "Service",
        "metadata": {**meta, "uid": "u2", "ownerReferences": [{"uid": "u1"}]},
        "spec": {"clusterIP": "10.0.0.1", "selector": {"revision": revision}},
    }
    server = _Server({canaries_ours.CANARIES: [owner], canaries.SERVICES: [owned]})
    mould = canary_rest.Mould(ours)
    await mould.take(server)  # type: ignore[arg-type]  # all that it asks

    await mould.pour(server, "canary-00001")  # type: ignore[arg-type]  # all that it asks

    canary, service = server.made
    hashed, revised, _ = ours.spellings("canary-00001")
    assert hashed != template
    assert canary == {
        "metadata": {"namespace": "bench", "name": "canary-00001"},
        "spec": {"app": "canary-00001"},
    }
    assert server.told == [{"memory": {"name": "bench/canary-00001/new-1"}, "stableHash": hashed}]
    assert service["metadata"]["ownerReferences"] == [{"uid": "new-1"}]
    assert service["spec"] == {"selector": {"revision": revised}}


class _Server:
    """Takes objects down, and gives each a UID."""

    def __init__(self, held: dict[Resource, list[Object]]) -> None:
        self.held = held
        self.made: list[Object] = []
        self.told: list[Object] = []

    async def each(self, resource: Resource, _: object) -> AsyncIterator[Object]:
        for one in self.held.get(resource, ()):
            yield one

    async def create(self, _: Resource, obj: Object) -> Object:
        self.made.append(obj)
        return {**obj, "metadata": {**obj["metadata"], "uid": f"new-{len(self.made)}"}}

    async def patch(self, _: Resource, __: Key, change: Object, *, subresource: str) -> None:
        self.told.append(change[subresource])


def _line(verb: str, resource: str, part: str = "") -> str:
    about = {"resource": resource, "subresource": part, "namespace": "bench"}
    entry = {"kind": "Event", "verb": verb, "objectRef": about, "stage": "ResponseComplete"}
    return json.dumps(entry) + "\n"


def _rollout(name: str, version: int, phase: str, **status: Any) -> Object:
    meta = {"namespace": "bench", "name": name, "uid": name, "resourceVersion": str(version)}
    told = {"phase": phase, "observedGeneration": "1"} | status
    return {"metadata": meta | {"generation": 1}, "status": told}
