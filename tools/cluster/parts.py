"""What the cluster is made of, and where each part lies on this machine.

Looked for first in `KUBEBUILDER_ASSETS`, as users of envtest expect, then in our cache folder,
which is named after the pinned modules and the Go version, so that a new pin never meets an
old program.
"""

import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead import errors

RIG = Path(__file__).resolve().parents[2] / "tests" / "cluster" / "rig"
KUBERNETES = "v1.36.3"
HOW = "run `make test-cluster` (Go 1.26, about 10 minutes once) or set KUBEBUILDER_ASSETS"
HOW_GATEWAY = "run `make gateway` (Go 1.26, about 7 minutes once)"
_PINS = ("go.mod", "go.sum", "crds/go.mod", "crds/go.sum")
_VERSION = "k8s.io/component-base/version"
_NAMED = " ".join(
    (
        "-s -w",
        f"-X {_VERSION}.gitVersion={KUBERNETES}",
        f"-X {_VERSION}.gitMajor={KUBERNETES[1:].split('.', maxsplit=1)[0]}",
        f"-X {_VERSION}.gitMinor={KUBERNETES.split('.')[1]}",
    )
)


@dataclass(frozen=True, slots=True)
class Program:
    """One server or tool, built from one Go package."""

    name: str
    package: str
    module: Path = RIG
    """The folder whose go.mod pins it."""

    linker: str = _NAMED
    """What the linker is told; ours say which Kubernetes they are."""


def _pinned(name: str, package: str, module: Path) -> Program:
    """A program that a module of its own pins, so its name tells which pin, and which lines."""
    files = ("go.mod", "go.sum", "main.go", "tools.go")
    seen = b"".join((module / file).read_bytes() for file in files if (module / file).exists())
    return Program(f"{name}-{hashlib.sha256(seen).hexdigest()[:8]}", package, module)


# Helm's engine behind a few lines of ours.
HELM = _pinned("helm-render", "fairlead.dev/tests/cluster/rig/helm", RIG / "helm")
# In the order in which a waiting test can use them.
PROGRAMS = (
    Program("etcd", "go.etcd.io/etcd/server/v3"),
    Program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    Program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    Program("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
    Program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    HELM,
)
# A real data plane: built only when asked for, because few tests need it.
GATEWAY = _pinned(
    "envoy-gateway", "github.com/envoyproxy/gateway/cmd/envoy-gateway", RIG / "gateway"
)
EXTRAS = (GATEWAY,)


@dataclass(frozen=True, slots=True)
class Files:
    """Files that we take out of a Go module as they are."""

    folder: str
    module: str
    pattern: str
    pinned_by: Path


FILES = (
    Files("stages", "sigs.k8s.io/kwok", "kustomize/stage/node/fast/*.yaml", RIG),
    Files("stages", "sigs.k8s.io/kwok", "kustomize/stage/pod/fast/*.yaml", RIG),
    Files("stages", "sigs.k8s.io/kwok", "kustomize/stage/pod/chaos/*.yaml", RIG),
    Files("crds/istio", "istio.io/api", "kubernetes/*.yaml", RIG / "crds"),
    Files("crds/gateway", "sigs.k8s.io/gateway-api", "config/crd/standard/*.yaml", RIG / "crds"),
    Files("crds/argocd", "github.com/argoproj/argo-cd/v3", "manifests/crds/*.yaml", RIG / "crds"),
)


GATEWAY_CRDS = Files(
    f"crds/{GATEWAY.name}",
    "github.com/envoyproxy/gateway",
    "charts/gateway-helm/charts/crds/crds/generated/*.yaml",
    RIG / "gateway",
)
EXTRA_FILES = (GATEWAY_CRDS,)


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts that were found: programs by name, and the folder of taken files."""

    programs: Mapping[str, Path]
    files: Path

    def program(self, name: str) -> Path:
        if name not in self.programs:
            raise errors.NotFound(f"program of the test cluster not built: {name}", hint=HOW)
        return self.programs[name]

    def folder(self, name: str) -> Path:
        found = self.files / name
        if not found.is_dir():
            raise errors.NotFound(f"files of the test cluster not fetched: {name}", hint=HOW)
        return found

    def missing(self) -> tuple[str, ...]:
        return self._lacking(PROGRAMS, FILES)

    def missing_extras(self) -> tuple[str, ...]:
        """What only a data plane needs; a cluster is whole without it."""
        return self._lacking(EXTRAS, EXTRA_FILES)

    def _lacking(self, programs: Iterable[Program], files: Iterable[Files]) -> tuple[str, ...]:
        names = [program.name for program in programs if program.name not in self.programs]
        folders = dict.fromkeys(one.folder for one in files)
        return (*names, *(name for name in folders if not (self.files / name).is_dir()))


def find() -> Parts:
    cache = cache_folder()
    return Parts(dict(_found(_places(cache))), cache)


def cache_folder() -> Path:
    return pinned_folder("cluster", [RIG / name for name in _PINS])


def pinned_folder(kind: str, files: Sequence[Path]) -> Path:
    """Where this pin's parts are kept: outside the repository, shared by all its clones."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("FAIRLEAD_CACHE") or home / "fairlead") / kind
    pins = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    version = go_version()
    if version:
        return root / f"{pins}-{version}"
    # Without Go nothing can be built, but what another Go built from the same pins still runs.
    built = sorted(root.glob(f"{pins}-go*"), key=lambda folder: folder.stat().st_mtime)
    return built[-1] if built else root / f"{pins}-go"


@functools.cache
def go_version() -> str:
    go = shutil.which("go")
    if go is None:
        return ""
    asked = [go, "env", "GOVERSION"]
    return subprocess.run(asked, cwd=RIG, capture_output=True, text=True, check=True).stdout.strip()


def _places(cache: Path) -> list[Path]:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    return [Path(assets), cache] if assets else [cache]


def _found(places: Iterable[Path]) -> Iterable[tuple[str, Path]]:
    for program in (*PROGRAMS, *EXTRAS):
        for place in places:
            path = place / program.name
            if os.access(path, os.X_OK) and path.is_file():
                yield program.name, path
                break
