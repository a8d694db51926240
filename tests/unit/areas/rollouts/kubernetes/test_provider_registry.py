"""A new traffic provider is one new file: here it is, and nothing else was edited."""

from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.kubernetes import (
    parsing,
    provider_registry,
    providers,
    types,
    validation,
    wiring,
)
from fairlead.areas.rollouts.kubernetes.routing.permitted import Permitted
from fairlead.areas.rollouts.kubernetes.routing.provider import Provider
from fairlead.clients.prometheus import render
from fairlead.kubernetes import schema
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

ARGUMENTS = {
    "namespace": "shop",
    "target": "web",
    "service": "web",
    "port": "80",
    "interval": "1m",
}
FILE = '''
"""A mesh of paper: it splits nothing, and counts what it does not split."""

from typing import ClassVar

from fairlead.areas.rollouts.kubernetes.providers.replica_ratio import ReplicaRatio
from fairlead.areas.rollouts.rules import Words
from fairlead.kubernetes.schema import Rule


class PaperWords(Words, frozen=True):
    """Traffic is split on paper."""

    __rules__: ClassVar = (Rule("self.sheets > 0", "a sheet is needed", path=".sheets"),)

    sheets: int = 1
    folder: str | None = None


class Paper(ReplicaRatio):
    name = "paperMesh"
    words = PaperWords
    metrics = {"request-duration": "paper_seconds"}
    adopted = "folder"

    def unsupported(self, strategy, *, is_target):
        return [("spec.strategy.mirror", "paper has one side")] if strategy.mirror else []

    def beyond(self, site, permitted):
        asked = site.desired.get("folder")
        return [("folder", "not for everybody")] if asked not in (None, *permitted.hosts) else []


def provider():
    return Paper()
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "paper.py").write_text(FILE)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])


def fields() -> dict[str, Any]:
    definition = schema.structural(types.canary_spec())
    found: dict[str, Any] = definition["properties"]["provider"]
    return found


@pytest.mark.usefixtures("folder")
def test_its_fields_and_rules_stand_in_the_definition() -> None:
    provider = fields()

    assert list(provider["properties"]) == ["gatewayApi", "istio", "paperMesh", "replicas"]
    assert set(provider["properties"]["paperMesh"]["properties"]) == {"sheets", "folder"}
    assert "a sheet is needed" in str(provider["properties"]["paperMesh"])
    assert "has(self.paperMesh)" in str(provider["x-kubernetes-validations"])
    assert "paperMesh" in wiring.canaries().providers


@pytest.mark.usefixtures("folder")
def test_its_metrics_and_what_it_adopts_are_its_own() -> None:
    found = parsing.read(canary(provider={"paperMesh": {"folder": "archive"}}))

    assert parsing.called(found, Slot.CANARY).metrics == {"request-duration": "paper_seconds"}
    assert found.adopts
    assert not parsing.read(canary(provider={"paperMesh": {}})).adopts


@pytest.mark.usefixtures("folder")
def test_what_it_cannot_do_is_refused() -> None:
    asked = canary(provider={"paperMesh": {}}, strategy={"steps": [10], "mirror": 5})

    assert ("spec.strategy.mirror", "paper has one side") in validation.of_object(asked)


@pytest.mark.usefixtures("folder")
def test_what_it_asks_for_beyond_its_namespace_is_its_own_to_say() -> None:
    asked, kinds = canary(provider={"paperMesh": {"folder": "archive"}}), wiring.canaries()

    refused = kinds.review(asked, None)
    kinds.permitted = Permitted(hosts=("archive",))

    assert refused == [("spec.provider.paperMesh.folder", "not for everybody")]
    assert kinds.review(asked, None) == []


def test_without_the_file_there_is_no_such_field() -> None:
    assert list(fields()["properties"]) == ["gatewayApi", "istio", "replicas"]


@pytest.mark.parametrize("name", ["istio", "gatewayApi", "replicas"])
def test_each_that_ships_has_all_that_is_asked_of_one(name: str) -> None:
    found = provider_registry.found()[name]

    assert isinstance(found, Provider)
    assert found.name == name
    assert found.words() is not None
    rendered = [render(text, ARGUMENTS) for text in found.metrics.values()]
    assert not any("{{" in query for query in rendered)
    assert sorted(found.metrics) in (
        [],
        ["request-count", "request-duration", "request-success-rate"],
    )


def test_the_istio_metrics_are_those_of_the_reference() -> None:
    metrics = provider_registry.found()["istio"].metrics
    labels = (
        'reporter="destination",destination_workload_namespace="shop",destination_workload=~"web"'
    )

    assert render(metrics["request-success-rate"], ARGUMENTS) == (
        f'(sum(rate(istio_requests_total{{{labels},response_code!~"5.*"}}[1m])) or vector(0))'
        f" / sum(rate(istio_requests_total{{{labels}}}[1m])) * 100"
    )
    assert render(metrics["request-duration"], ARGUMENTS) == (
        "histogram_quantile(0.99, sum(rate("
        f"istio_request_duration_milliseconds_bucket{{{labels}}}[1m])) by (le))"
    )
