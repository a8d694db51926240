"""What is wrong with a check is said when it is read, with the field it stands in."""

from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.adapters.measures.hooks import Hosts
from fairlead.adapters.measures.reading import Reader
from fairlead.adapters.measures.servers import USUAL, Server, Servers
from fairlead.adapters.prometheus import Access
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.rollouts.ports import Names
from fairlead.domain.rollouts.spec import Check, Source
from fairlead.settings import MeasureSettings
from tests.unit.adapters.measures.about import about, naming

ACCESS = Access("http://127.0.0.1:9090")
READER = Reader(
    Servers({USUAL: Server(ACCESS), "pay": Server(ACCESS, ("pay/*",))}), Hosts.read("gate.example")
)
POOR = Reader(Servers({}), Hosts())
NAMES = naming(about(), Slot.CANARY)


def problems(check: Check, reader: Reader = READER, names: Names = NAMES) -> dict[str, str]:
    return dict(reader.problems(check, "team/shop", names))


def judge(*metrics: dict[str, Any]) -> Check:
    return Check("all", source=Source.JUDGE, judge={"metrics": list(metrics)})


@pytest.mark.parametrize(
    "check",
    [
        Check("a", "up"),
        Check("a", "request-success-rate"),
        Check("a", 'x{n="{{ namespace }}",c="{{ primary-service }}"}[{{ interval }}]'),
        Check("a", "https://gate.example/ask", Source.GATE),
        Check("a", "https://gate.example/n?of={{ target }}#/rate", Source.WEB),
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
        (Check("a", 'x{a="{{ cluster }}"}'), "query", "missing: cluster"),
        (Check("a", "x + {{ namespace }}{}"), "", ""),
        (Check("a", "up", server="pay"), "server", "no server of this name"),
        (Check("a", "up", server="none"), "server", "no server of this name"),
        (Check("a", "", Source.GATE), "query", "malformed address"),
        (Check("a", "https://evil.example", Source.GATE), "query", "FAIRLEAD_HOOKS_HOSTS"),
        (Check("a", "https://evil.example", Source.WEB), "query", "FAIRLEAD_HOOKS_HOSTS"),
        (Check("a", "https://gate.example#rate", Source.WEB), "query", "malformed pointer"),
        (Check("a", "https://gate.example/{{ x }}", Source.WEB), "query", "missing: x"),
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
    names = Names("", NAMES.arguments)

    assert "nobody counts" in problems(Check("a", "request-duration"), READER, names)["query"]


def test_the_program_makes_one_from_its_settings() -> None:
    chosen = MeasureSettings(prometheus_url="http://127.0.0.1:9090", hooks_hosts="gate.example")
    reader = bootstrap.reader(chosen)

    assert problems(Check("a", "up"), reader) == {}
    assert problems(Check("a", "https://gate.example", Source.GATE), reader) == {}
    assert list(problems(Check("a", "https://evil.example", Source.GATE), reader)) == ["query"]
