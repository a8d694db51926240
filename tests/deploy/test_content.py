"""The manifest of the content service: what it mounts is sound, and no pod goes too early."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead import settings
from fairlead.areas.content import description
from fairlead.areas.content.commands.serve import serve
from fairlead.areas.content.domain.population import NOBODY
from fairlead.areas.content.service import own_share
from fairlead.areas.content.settings import ContentSettings

FILE = Path(__file__).parents[2] / "deploy" / "content" / "kubernetes.yaml"


@pytest.fixture(scope="module")
def objects() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text())}


def test_what_it_mounts_describes_a_content_that_nobody_gets_a_canary_of(
    objects: dict[str, Any],
) -> None:
    mounted = objects["ConfigMap"]["data"]

    described = description.read(yaml.safe_load(mounted["content.yaml"]), Path())

    assert described.kind == "gathering"
    assert own_share.parse(mounted["share.json"].encode()).share == NOBODY


@pytest.mark.requirement("content 13", "content 15")
def test_no_pod_goes_before_a_new_one_has_loaded_its_content(objects: dict[str, Any]) -> None:
    spec = objects["Deployment"]["spec"]
    container = spec["template"]["spec"]["containers"][0]

    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    given = {each["name"]: each["value"] for each in container["env"]}
    assert {"STABLE_VERSION", "CANARY_VERSION"} <= given.keys()
    read = settings.from_environment(given, [ContentSettings]).of(ContentSettings)
    assert read.content_drain_seconds < spec["template"]["spec"]["terminationGracePeriodSeconds"]
    assert container["args"][:2] == ["content", serve.name]
    assert read.content_listen.endswith(f":{container['ports'][0]['containerPort']}")
