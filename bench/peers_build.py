"""Peers that are programs of their own, built once from the Go module that bench/peers pins.

`python -m bench build` makes them; a benchmark that does not find its peer leaves its ratios out.
Tests and CI never need them.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from bench import harness
from fairlead import errors
from tools.cluster import build as builder
from tools.cluster import parts

PINS = Path(__file__).resolve().parent / "peers"
HOW = "run `make peers` (Go 1.26, about 5 minutes once)"
_ARGO_ROLLOUTS = "github.com/argoproj/argo-rollouts"
CONTROLLER = parts.Program(
    "rollouts-controller", f"{_ARGO_ROLLOUTS}/cmd/rollouts-controller", PINS, linker="-s -w"
)
CRDS = parts.Files("crds/argo-rollouts", _ARGO_ROLLOUTS, "manifests/crds/*.yaml", PINS)


@dataclass(frozen=True, slots=True)
class ArgoRollouts:
    """The controller as its makers build it, and the definitions of its kinds."""

    program: Path
    crds: Path


def folder() -> Path:
    return parts.pinned_folder("peers", [PINS / "go.mod", PINS / "go.sum"])


def missing() -> tuple[str, ...]:
    here = folder()
    built = os.access(here / CONTROLLER.name, os.X_OK)
    lacking = () if built else (CONTROLLER.name,)
    return lacking if (here / CRDS.folder).is_dir() else (*lacking, CRDS.folder)


def argo_rollouts() -> ArgoRollouts | None:
    """The peer, or None where it was not built."""
    lacking = missing()
    if lacking:
        harness.say(f"not built, so its ratios are left out: {', '.join(lacking)}; {HOW}")
        return None
    return ArgoRollouts(folder() / CONTROLLER.name, folder() / CRDS.folder)


def build(jobs: int | None = None) -> Path:
    """Every missing peer; `jobs` bounds how many packages are compiled at once."""
    if missing() and shutil.which("go") is None:
        raise errors.Unavailable(
            "cannot build the peers: go is not on PATH", hint="install Go 1.26 or newer"
        )
    builder.make(folder(), (CONTROLLER, CRDS), missing, jobs)
    return folder()
