"""Our operator as a user starts it: one CanaryDeployment a canary, ten percent and an approval."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from bench.contestants import canaries
from fairlead import bootstrap
from fairlead.areas.rollouts.kubernetes import parsing
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes import kinds, rbac
from fairlead.kubernetes.objects import Key, Object, Resource
from tools.cluster import parts, process

CANARIES = Resource("fairlead.dev", "v1alpha1", "canarydeployments", "CanaryDeployment")
_ISTIO = "\nkind: CustomResourceDefinition\n"


def is_shipped() -> bool:
    return any(
        kind.api.plural == CANARIES.plural
        for kind in wiring.with_kinds(bootstrap.installation()).kinds
    )


class Operator:
    """`fairlead operator` on SQLite, with one way of sharing requests out."""

    shows = CANARIES
    parts: tuple[Resource, ...] = (
        CANARIES,
        canaries.REVISIONS,
        canaries.DEPLOYMENTS,
        canaries.SERVICES,
        canaries.SLICES,
    )

    def __init__(self, provider: str) -> None:
        self._provider = provider

    def definitions(self) -> Iterable[bytes]:
        for kind in wiring.with_kinds(bootstrap.installation()).kinds:
            yield msgspec.json.encode(rbac.definition(kind))
        if self._provider == "istio":
            yield from _of_istio()

    def namespaces(self) -> Iterable[str]:
        return ()

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        # As a pod has it: a state folder that is empty at the start. `env` becomes the program.
        where = [
            f"FAIRLEAD_STATE_DIR={canaries.state(folder)}",
            "FAIRLEAD_LOG_LEVEL=error",
        ]
        flags = [f"--kubeconfig={kubeconfig}", f"--namespace={canaries.NAMESPACE}"]
        listen = f"--listen=127.0.0.1:{process.free_port()}"
        program = [sys.executable, "-m", "fairlead", "operator"]
        return ["/usr/bin/env", *where, *program, *flags, "--no-leader-elect", listen]

    def makes(self, name: str) -> Iterable[canaries.Write]:
        spec: dict[str, Any] = {
            "deploymentSpec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": name}},
                "template": canaries.template(name),
            },
            "serviceSpec": {"ports": [{"port": 80, "targetPort": 8080}]},
            "provider": {self._provider: {}},
            "strategy": {"steps": [canaries.WEIGHT], "approve": True},
        }
        yield canaries.Write(CANARIES, Key(canaries.NAMESPACE, name), {"spec": spec})

    def change(self, name: str) -> canaries.Write:
        change = {"spec": {"deploymentSpec": canaries.new_image()["spec"]}}
        return canaries.Write(CANARIES, Key(canaries.NAMESPACE, name), change)

    def spellings(self, name: str) -> Sequence[str]:
        version = parsing.version(canaries.template(name), cast("kinds.Snapshot", None))
        return version.template, version.revision, name

    def is_idle(self, shown: Object) -> bool:
        return bool((shown.get("status") or {}).get("phase") == "Stable")

    def is_paused(self, shown: Object) -> bool:
        """Its weight is shown by what carries the route, and only a person is waited for."""
        status = shown.get("status") or {}
        told = (status.get("phase"), status.get("canaryWeight"))
        return told == ("AwaitingApproval", canaries.WEIGHT)


def _of_istio() -> Iterable[bytes]:
    for file in sorted(parts.find().folder("crds/istio").glob("*.yaml")):
        for document in file.read_text().split("\n---\n"):
            if _ISTIO in f"\n{document}\n":
                yield document.encode()
