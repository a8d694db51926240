"""A workload as a file tells it: what it means, and how a wrong one is refused."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts import workloads
from fairlead.areas.rollouts.domain.plan.spec import Spec


def document(**more: Any) -> dict[str, Any]:
    return {"name": "shop", "listen": 8080, "program": {"command": ["shop"]}} | more


def refused(content: object) -> errors.Rejected:
    with pytest.raises(errors.Rejected) as caught:
        workloads.read(content)
    return caught.value


def test_the_least_that_can_be_said() -> None:
    then = workloads.read(document())

    assert (then.name, then.listen, then.metrics_port) == ("shop", 8080, None)
    assert (then.want.spec, then.want.replicas) == (Spec(), 1)
    assert str(then.want.version) == then.revision


def test_every_word_is_heard() -> None:
    program = {
        "command": ["shop", "--fast"],
        "env": {"COLOUR": "blue"},
        "cwd": "/srv",
        "health": "/healthz",
        "drain": "3s",
        "limits": {"memoryBytes": 1, "openFiles": 2, "cpuSeconds": 3},
    }

    then = workloads.read(document(version="v2", replicas=3, metricsPort=9, program=program))

    assert str(then.want.version) == "v2"
    assert (then.want.replicas, then.metrics_port) == (3, 9)
    assert then.program.env == {"COLOUR": "blue"}
    assert then.program.limits == workloads.LimitWords(memory_bytes=1, open_files=2, cpu_seconds=3)


def test_another_program_or_another_name_is_another_revision() -> None:
    same = [workloads.read(document(replicas=2)), workloads.read(document(keep=3))]
    other = [
        workloads.read(document(version="v2")),
        workloads.read(document(program={"command": ["shop"], "env": {"A": "b"}})),
    ]

    first = workloads.read(document()).revision
    assert {each.revision for each in same} == {first}
    assert len({first, *(each.revision for each in other)}) == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([], "expected a map, got a list"),
        ({"name": "shop"}, "listen: missing; program: missing"),
        (document(name="Shop"), "name: invalid workload name: 'Shop'"),
        (document(name="a" * 31), "name: invalid workload name: "),
        (document(listen=0), "listen: expected at least 1: 0"),
        (document(replicas="2"), "replicas: expected a whole number, got text: 2"),
        (document(program={"command": []}), "program.command: empty"),
        (document(program={"command": "shop"}), "program.command: expected a list, got text: shop"),
        (document(program={"command": ["a"], "env": {"A=": "b"}}), "program: command or env"),
        (document(program={"command": ["a"], "health": "x"}), "program.health: not a path: 'x'"),
        (document(program={"command": ["a"], "drain": "x"}), "program.drain: not a duration: 'x'"),
        (document(strategy={"steps": [101]}), "strategy.steps[0]: expected at most 100: 101"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_path(content: object, said: str) -> None:
    then = refused(content)

    assert then.message.startswith(said)
    assert then.hint


def test_all_that_does_not_hold_is_told_at_once() -> None:
    then = refused(
        document(
            name="Shop",
            program={"command": ["shop"], "drain": "x"},
            strategy={"pause": "x"},
            checks=[{"name": "a", "gate": "b", "interval": "y"}, {"name": "c"}],
        )
    )

    assert isinstance(then, errors.Invalid)
    assert [each.path for each in then.problems] == [
        "name",
        "program.drain",
        "strategy.pause",
        "checks[0].interval",
        "checks[1]",
    ]


def test_what_makes_no_sense_is_told_beside_what_has_no_right_shape() -> None:
    then = refused(
        document(
            name="Shop",
            listn=1,
            strategy={"steps": [50, "x"], "pause": "x"},
            checks=[
                {"name": "a", "metric": "request-sucess-rate", "interval": "y"},
                {"name": "b", "query": "up", "success": "reslt < 1"},
            ],
        )
    )

    assert isinstance(then, errors.Invalid)
    assert [each.path for each in then.problems] == [
        "listn",
        "strategy.steps[1]",
        "checks[0].metric",
        "name",
        "strategy.pause",
        "checks[1]",
    ]


def test_a_missing_field_hides_no_other_mistake() -> None:
    then = refused(
        {
            "listen": "x",
            "program": {"health": "healthz"},
            "strategy": {"pause": "x", "bake": "y", "affinity": {}},
            "checks": [{"gate": "b", "interval": "z"}],
        }
    )

    assert isinstance(then, errors.Invalid)
    assert [each.path for each in then.problems] == [
        "name",
        "listen",
        "program.command",
        "strategy.affinity.cookie",
        "checks[0].name",
        "program.health",
        "strategy.pause",
        "checks[0].interval",
        "strategy.bake",
    ]


@pytest.mark.parametrize(
    "content", [[], None, {"name": 1, "a.b": 1}, {"program": {"env": {"a.b": 1}}}]
)
def test_whatever_it_is_it_is_refused(content: object) -> None:
    with pytest.raises(errors.Invalid):
        workloads.read(content)


def test_a_project_is_part_of_the_name_and_bounds_groups_and_limiters() -> None:
    asked = workloads.read(
        {
            "name": "shop",
            "project": "payments",
            "listen": 8080,
            "program": {"command": ["shop"]},
            "group": {"name": "all", "members": ["shop", "cart"]},
            "limiter": {"name": "two", "cap": 2},
        }
    )

    spec = asked.want.spec
    assert asked.name == "payments/shop"
    assert spec.group is not None
    assert spec.limiter is not None
    assert (spec.group.name, spec.group.me) == ("payments/all", "shop")
    assert spec.limiter.name == "payments/two"


@pytest.mark.parametrize("project", ["a/b", "..", "a_b", "A", "a" * 31])
def test_a_project_is_a_label(project: str) -> None:
    content = {"name": "shop", "project": project, "listen": 1, "program": {"command": ["x"]}}

    with pytest.raises(errors.Invalid, match="project: invalid project name"):
        workloads.read(content)


@pytest.mark.parametrize("name", ["shop", "payments/shop", "a-b/c-d"])
def test_a_name_of_files_tells_the_whole_name(name: str) -> None:
    assert workloads.named(workloads.file_name(name)) == name
    assert "/" not in workloads.file_name(name)
