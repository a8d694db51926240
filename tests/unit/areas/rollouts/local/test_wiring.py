"""Who answers checks on this machine: Envoy, a Prometheus, and hosts that an operator allows."""

from pathlib import Path

import pytest

from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.local import wiring
from fairlead.checks.spec import Check, CheckKind
from fairlead.settings import MeasureSettings, Settings, StoreSettings

METRIC, JUDGE, GATE = CheckKind.METRIC, CheckKind.JUDGE, CheckKind.GATE
OWN = {"metrics": [{"name": "request-duration"}, {"name": "lag", "query": "lag"}]}


def problems(check: Check, folder: Path, prometheus_url: str = "") -> dict[str, str]:
    measures = MeasureSettings(prometheus_url=prometheus_url, hooks_hosts="gate.example")
    chosen = Settings(store=StoreSettings(state_dir=folder), measures=measures)
    answers = wiring.platform(chosen).services.find(workloads.ANSWERS)
    assert answers is not None
    return dict(answers(check, "shop"))


@pytest.mark.parametrize(
    "check",
    [
        Check("a", "request-success-rate"),
        Check("a", kind=JUDGE, judge={"metrics": [{"name": "request-duration"}]}),
        Check("a", "https://gate.example/open", GATE),
        Check("a", "https://gate.example/n#/lag", source="web"),
    ],
)
def test_what_envoy_counts_and_an_operator_allows_can_be_asked(
    check: Check, tmp_path: Path
) -> None:
    assert problems(check, tmp_path) == {}


@pytest.mark.parametrize(
    ("check", "field", "said"),
    [
        (Check("a", "up"), "query", "set FAIRLEAD_PROMETHEUS_URL for a query of your own"),
        (Check("a", kind=JUDGE, judge=OWN), "judge.metrics[1].name", "Envoy counts request-"),
        (Check("a", "up", source="nope"), "source", "but prometheus, web, envoy"),
        (Check("a", "https://evil.example", GATE), "query", "FAIRLEAD_HOOKS_HOSTS"),
    ],
)
def test_what_nobody_here_can_answer_is_told_with_its_field(
    check: Check, field: str, said: str, tmp_path: Path
) -> None:
    ((at, told),) = problems(check, tmp_path).items()

    assert at == field
    assert said in told


def test_with_a_prometheus_a_query_of_ones_own_is_for_it(tmp_path: Path) -> None:
    url = "http://127.0.0.1:9090"

    assert problems(Check("a", "up"), tmp_path, url) == {}
    assert "not closed" in problems(Check("a", "sum("), tmp_path, url)["query"]
