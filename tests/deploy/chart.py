"""The Helm chart, rendered by Helm's own engine (tests/cluster/rig/helm) for kinds of a test."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object
from tests.cluster import plugin
from tools import manifests
from tools.cluster import parts

SOURCE = manifests.ROOT / manifests.CHART


class Refused(Exception):
    """Helm will not have these values."""


def chart_for(kinds: Sequence[Kind], folder: Path) -> Path:
    """A copy of the chart as `make manifests` would leave it for these kinds."""
    chart = folder / "fairlead"
    shutil.copytree(SOURCE, chart, ignore=shutil.ignore_patterns("crds", "files"))
    for path, text in manifests.of_chart(kinds).items():
        (chart / path).parent.mkdir(exist_ok=True)
        (chart / path).write_text(text, encoding="utf-8")
    return chart


def rendered(chart: Path, namespace: str, values: dict[str, Any]) -> list[Object]:
    found = parts.find()
    plugin.need(found, parts.HELM.name)
    program = str(found.program(parts.HELM.name))
    done = subprocess.run(
        [program, str(chart), "release", namespace],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise Refused(done.stderr)
    return [each for each in yaml.safe_load_all(done.stdout) if each]
