"""What a request for a deployment must hold, and all that is wrong with one."""

import copy
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments import requests
from tests.unit.areas.deployments.asked import WORDS


def refused(**changes: Any) -> dict[str, str]:
    with pytest.raises(errors.Invalid) as told:
        requests.read({**WORDS, **changes})
    return {each.path: each.message for each in told.value.problems}


def test_a_deployment_is_named_after_where_it_goes() -> None:
    assert requests.read(WORDS).name == "prod-eu/shop/v1"


def test_every_mistake_of_every_part_is_told_with_its_field() -> None:
    app = copy.deepcopy(WORDS["application"])
    app["runtimes"][0]["containers"][0]["imag"] = {}
    cluster = {**WORDS["cluster"], "name": 7}

    told = refused(application=app, cluster=cluster)

    assert told["application.runtimes[0].containers[0].imag"] == "unknown field"
    assert "cluster.name" in told


def test_what_is_missing_or_unknown_is_told() -> None:
    assert refused(flag="quick") == {"flag": "unknown field"}
    assert refused(expects="MAYBE") == {"expects": "unknown value: MAYBE"}
    with pytest.raises(errors.Invalid, match="environment: missing"):
        requests.read({"version": "v1", "application": WORDS["application"]})
    with pytest.raises(errors.Rejected, match="no such flag: slow"):
        requests.read({**WORDS, "flags": ["slow"]})
