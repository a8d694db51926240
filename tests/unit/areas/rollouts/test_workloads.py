"""A workload as a file tells it: what it means, and how a wrong one is refused."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.domain.rollouts.spec import Spec
from fairlead.intents import workloads


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
        ([], "expected object, got array"),
        ({"name": "shop"}, "object missing required field listen"),
        (document(name="Shop"), "name: not a name of a workload: 'Shop'"),
        (document(name="a" * 31), "name: not a name of a workload: "),
        (document(listen=0), "listen: expected int >= 1"),
        (document(replicas="2"), "replicas: expected int, got str"),
        (document(program={"command": []}), "program.command: empty"),
        (document(program={"command": "shop"}), "program.command: expected array, got str"),
        (document(program={"command": ["a"], "env": {"A=": "b"}}), "program: command or env"),
        (document(program={"command": ["a"], "health": "x"}), "program.health: not a path: 'x'"),
        (document(program={"command": ["a"], "drain": "x"}), "program.drain: not a time: 'x'"),
        (document(strategy={"steps": [101]}), "strategy.steps[0]: expected int <= 100"),
    ],
)
def test_what_does_not_hold_is_refused_with_its_path(content: object, said: str) -> None:
    then = refused(content)

    assert then.message.startswith(said)
    assert then.hint
