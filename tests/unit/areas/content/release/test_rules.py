"""The file of a release: what it means, and all that is wrong with it."""

import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.messages import Propose
from fairlead.areas.content.domain.release.place import (
    Flag,
    GitFile,
    KubernetesService,
    LocalService,
)
from fairlead.areas.content.release import rules
from fairlead.engine.messages import StreamName

CONTENT = {"name": "gathering", "kind": "gathering", "source": {"directory": "/srv/content"}}
FILE: dict[str, Any] = {
    "content": CONTENT,
    "local": {"port": 8000},
    "steps": [{"share": 0.01, "bake": "2h"}, {"share": 12.5, "bake": "6h", "approve": True}],
    "checks": [{"name": "archives", "query": "sum(archives)", "low": 0.9}],
}


def test_a_file_is_read() -> None:
    intent = rules.read(FILE)

    assert intent.name == "gathering"
    assert intent.place.local == LocalService(8000, 2)
    assert intent.place.description["source"]["directory"] == "/srv/content"
    assert [(step.share, step.bake, step.approve) for step in intent.plan.steps] == [
        (1, dt.timedelta(hours=2), False),
        (1250, dt.timedelta(hours=6), True),
    ]
    assert intent.plan.checks[0].low == 0.9


@pytest.mark.parametrize(
    ("growth", "shares"),
    [
        ({"linear": {"by": 25, "every": "2h"}}, [2500, 5000, 7500, 10_000]),
        ({"exponential": {"first": 10, "every": "2h", "to": 50}}, [1000, 2000, 4000, 5000]),
    ],
)
def test_a_share_may_grow_by_itself(growth: dict[str, Any], shares: list[int]) -> None:
    intent = rules.read({**FILE, "steps": [], **growth})

    assert [step.share for step in intent.plan.steps] == shares


def test_the_same_content_goes_through_stage_then_production() -> None:
    place = {"namespace": "conditions", "deployment": "service", "configMap": "share"}
    stage = rules.read({**FILE, "environment": "stage", "local": None, "kubernetes": place})
    flagged = rules.read({**FILE, "steps": [{"share": 5, "bake": "2h"}], "flag": {}})

    assert stage.name == "stage/gathering"
    assert stage.place.kubernetes == KubernetesService("conditions", "service", "content", "share")
    assert flagged.place.flag == Flag("gathering", "default", "production")


CLUSTER = {"namespace": "a", "deployment": "b", "configMap": "c"}


def test_a_deployment_may_have_its_variables_in_git() -> None:
    named = {"file": "production/content.yaml", "branch": "release/1"}

    then = rules.read({**FILE, "local": None, "kubernetes": {**CLUSTER, "git": named}})

    assert then.place.kubernetes is not None
    assert then.place.kubernetes.git == GitFile(**named)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"local": None}, "local"),
        ({"local": {"port": 0}}, "local.port"),
        ({"local": {"port": 80, "replicas": 0}}, "local.replicas"),
        ({"local": None, "kubernetes": {"namespace": "a", "deployment": "b"}},
         "kubernetes.configMap"),
        ({"local": None, "kubernetes": {**CLUSTER, "git": {"file": "../x"}}}, "kubernetes.git"),
        ({"local": None, "kubernetes": {**CLUSTER, "git": {"file": "x", "branch": "-x y"}}},
         "kubernetes.git"),
        ({"environment": "../x"}, "environment"),
        ({"after": "../x"}, "after"),
        ({"environment": "stage", "after": "stage"}, "after"),
        ({"content": {**CONTENT, "name": "A"}}, "name"),
        ({"steps": []}, "steps"),
        ({"linear": {"by": 25, "every": "2h"}}, "steps"),
        ({"steps": [{"share": 1, "bake": "1h"}]}, "steps"),
        ({"steps": [{"share": 0.001, "bake": "2h"}]}, "steps"),
        ({"flag": {}}, "steps"),
        ({"checks": [{"name": "a"}]}, "checks[0]"),
        ({"pollInterval": "often"}, "pollInterval"),
        ({"stepz": []}, "stepz"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_place(change: dict[str, Any], path: str) -> None:
    with pytest.raises(errors.Invalid) as refused:
        rules.read({**FILE, **change})

    assert [each.path for each in refused.value.problems] == [path]


@pytest.mark.parametrize("version", ["../1", "none", "", "-x"])
def test_a_version_is_never_a_path_or_an_option(version: str) -> None:
    with pytest.raises(errors.Rejected, match="not a version"):
        rules.Proposed(FILE, version, "new").command("rita")


def test_a_step_of_a_plan_proposes_in_its_name() -> None:
    parent = StreamName("deployment/d1")
    words = {"release": FILE, "version": "1.0.2", "why": "with the shop", "stable": "1.0.1"}

    send = rules.start(parent, words)

    assert send.stream == stream("gathering")
    assert isinstance(send.command, Propose)
    assert (send.command.by, send.command.parent) == (parent, parent)
    with pytest.raises(errors.Invalid):
        rules.start(parent, {"version": "1.0.2"})
