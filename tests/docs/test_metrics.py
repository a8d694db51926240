"""The page of metrics names every provider, every metric and every argument there is."""

import re
from pathlib import Path

from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.clients.prometheus import ENVOY

BUILT_IN = {name: each.metrics for name, each in provider_registry.found().items() if each.metrics}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "metrics.md"


def test_every_provider_stands_there_with_its_arguments() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|.*\| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    told = {provider: set(re.findall(r"`(\w+)`", cell)) for provider, cell in rows}

    assert told == {
        provider: set(re.findall(r"{{ (\w+) }}", "".join(metrics.values())))
        for provider, metrics in {**BUILT_IN, "envoy": ENVOY}.items()
    }


def test_every_metric_stands_there() -> None:
    names = {name for metrics in BUILT_IN.values() for name in metrics}

    assert all(f"`{name}`" in PAGE.read_text() for name in names)
