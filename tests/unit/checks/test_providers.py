"""What is wrong with a check is said when it is read, with the field it stands in."""

from pathlib import Path
from typing import Any

import pytest

from fairlead.checks import providers
from fairlead.checks.providers import Providers
from fairlead.checks.spec import Check, CheckKind
from fairlead.checks.subject import Names, Side
from fairlead.settings import MeasureSettings
from tests.unit.checks.about import about, naming

PROVIDERS = providers.found(
    MeasureSettings(prometheus_url="http://127.0.0.1:9090", hooks_hosts="gate.example")
)
POOR = providers.found(MeasureSettings())
NAMES = naming(about(), Side.CANARY)


def problems(check: Check, known: Providers = PROVIDERS, names: Names = NAMES) -> dict[str, str]:
    return dict(known.problems(check, "team/shop", names))


def judge(*metrics: dict[str, Any]) -> Check:
    return Check("all", kind=CheckKind.JUDGE, judge={"metrics": list(metrics)})


@pytest.mark.parametrize(
    "check",
    [
        Check("a", "up"),
        Check("a", "request-success-rate"),
        Check("a", 'x{n="{{ namespace }}",c="{{ primary-service }}"}[{{ interval }}]'),
        Check("a", "https://gate.example/ask", CheckKind.GATE),
        Check("a", "https://gate.example/n?of={{ target }}#/rate", source="web"),
        judge({"name": "request-duration"}, {"name": "errors", "query": "sum(errors)"}),
    ],
)
def test_a_sound_check_has_none(check: Check) -> None:
    assert problems(check) == {}


@pytest.mark.parametrize(
    ("check", "field", "said"),
    [
        (Check("a"), "query", "a check without a query"),
        (Check("a", "sum("), "query", "not closed, or closed without a beginning: ("),
        (Check("a", 'x{a="{{ cluster }}"}'), "query", "argument: cluster"),
        (Check("a", "x + {{ namespace }}{}"), "", ""),
        (Check("a", "up", server="pay"), "server", "no server of this name"),
        (Check("a", "up", server="none"), "server", "no server of this name"),
        (Check("a", "", CheckKind.GATE), "query", "malformed address"),
        (Check("a", "https://evil.example", CheckKind.GATE), "query", "FAIRLEAD_HOOKS_HOSTS"),
        (Check("a", "https://evil.example", source="web"), "query", "FAIRLEAD_HOOKS_HOSTS"),
        (Check("a", "https://gate.example#rate", source="web"), "query", "malformed pointer"),
        (Check("a", "https://gate.example/{{ x }}", source="web"), "query", "argument: x"),
        (judge({"name": "errors"}), "judge.metrics[0].query", "without a query"),
        (
            judge({"name": "a", "query": "up"}, {"name": "b", "query": "sum("}),
            "judge.metrics[1].query",
            "not closed",
        ),
        (
            judge(*({"name": f"m{index}", "query": "up"} for index in range(101))),
            "judge.metrics",
            "more than 100 metrics: 101",
        ),
    ],
)
def test_a_problem_names_its_field(check: Check, field: str, said: str) -> None:
    found = problems(check)

    assert list(found) == ([field] if field else [])
    assert said in found.get(field, "")


def test_an_installation_without_prometheus_says_so() -> None:
    assert "FAIRLEAD_PROMETHEUS_URL" in problems(Check("a", "up"), POOR)["query"]


def test_a_platform_without_a_mesh_has_no_built_in_metrics() -> None:
    names = Names({}, NAMES.arguments)

    assert "nobody counts" in problems(Check("a", "request-duration"), PROVIDERS, names)["query"]


def test_a_file_of_servers_is_chosen_from_by_name(tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text('[pay]\nurl = "http://pay:9090"\nrollouts = ["team/*"]\n')
    known = providers.found(MeasureSettings(prometheus_servers=str(file)))

    assert problems(Check("a", "up", server="pay"), known) == {}
    assert list(problems(Check("a", "up"), known)) == ["query"]


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (Check("a", "up", source="datadog"), "none of this name here, but prometheus, web"),
        (Check("a", "up", CheckKind.GATE, source="prometheus"), "none of this name here"),
        (
            Check("a", kind=CheckKind.JUDGE, judge={"metrics": [{"name": "a"}]}, source="web"),
            "web has no series of both sides",
        ),
    ],
)
def test_a_provider_that_cannot_answer_is_a_problem_of_its_field(check: Check, said: str) -> None:
    assert said in problems(check)["source"]
