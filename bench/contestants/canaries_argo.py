"""Argo Rollouts: one Rollout a canary, no traffic routing, ten percent and a pause."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from bench import peers_build
from bench.contestants import canaries
from fairlead.kubernetes.objects import Key, Object, Resource
from tools.cluster import process

ROLLOUTS = Resource("argoproj.io", "v1alpha1", "rollouts", "Rollout")
_HOME = "argo-rollouts"
# Far above its own default (40 and 80): its brake is not what is measured here, as ours is not.
_BRAKE = ("--qps=1000", "--burst=2000")


class ArgoRollouts:
    """The controller as it is shipped."""

    shows = ROLLOUTS
    parts: tuple[Resource, ...] = (ROLLOUTS, canaries.REPLICA_SETS)

    def __init__(self, built: peers_build.ArgoRollouts) -> None:
        self._built = built

    def definitions(self) -> Iterable[bytes]:
        return [file.read_bytes() for file in sorted(self._built.crds.glob("*.yaml"))]

    def namespaces(self) -> Iterable[str]:
        return (_HOME,)

    def command(self, kubeconfig: Path, folder: Path) -> list[str]:
        del folder
        ports = [f"--{name}Port={process.free_port()}" for name in ("healthz", "metrics")]
        where = [f"--kubeconfig={kubeconfig}", f"--namespace={_HOME}", "--leader-elect=false"]
        return [str(self._built.program), *where, *ports, *_BRAKE, "--loglevel=error"]

    def makes(self, name: str) -> Iterable[canaries.Write]:
        steps = [{"setWeight": canaries.WEIGHT}, {"pause": {}}]
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": canaries.template(name),
            "strategy": {"canary": {"steps": steps}},
        }
        yield canaries.Write(ROLLOUTS, _key(name), {"spec": spec})

    def change(self, name: str) -> canaries.Write:
        return canaries.Write(ROLLOUTS, _key(name), canaries.new_image())

    def spellings(self, name: str) -> Sequence[str]:
        return (name,)

    def is_idle(self, shown: Object) -> bool:
        return _phase(shown) == "Healthy"

    def is_paused(self, shown: Object) -> bool:
        status = shown.get("status") or {}
        fresh = status.get("updatedReplicas") == 1 and bool(status.get("pauseConditions"))
        return fresh and _phase(shown) == "Paused"


def _key(name: str) -> Key:
    return Key(canaries.NAMESPACE, name)


def _phase(shown: Object) -> str:
    """Its word, once it is about the object as it stands now."""
    status = shown.get("status") or {}
    seen = str(status.get("observedGeneration")) == str(shown["metadata"].get("generation"))
    return str(status.get("phase")) if seen else ""
