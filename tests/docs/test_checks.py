"""The examples of checks are sound, and a receiver can use the lines that verify a call."""

import base64
import hmac
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.areas.rollouts import rules
from fairlead.areas.rollouts.kubernetes import provider_registry
from fairlead.checks import providers, queries
from fairlead.checks.servers import read
from fairlead.checks.subject import Names
from fairlead.clients.webhooks import signature
from fairlead.settings import MeasureSettings

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOW_TO = DOCS / "how-to" / "judge-by-your-numbers.md"
REFERENCE = DOCS / "reference" / "checks.md"
NAMES = Names(
    provider_registry.found()["istio"].metrics,
    dict.fromkeys(("namespace", "target", "service", "port"), "shop"),
)
PROVIDERS = providers.found(
    MeasureSettings(
        prometheus_url="http://prometheus:9090", hooks_hosts="shop.example, board.example"
    )
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def examples() -> list[dict[str, Any]]:
    how_to = yaml.safe_load("".join(blocks(HOW_TO, "yaml")))["checks"]
    judge = yaml.safe_load(blocks(REFERENCE, "yaml")[0])
    return [*how_to, {"name": "judge", **judge}]


@pytest.mark.parametrize("example", examples(), ids=lambda each: each["name"])
def test_an_example_is_a_check_without_problems(example: dict[str, Any]) -> None:
    words = rules.convert({"checks": [example]}, rules.Rules)
    (check,) = rules.spec(words).checks

    assert PROVIDERS.problems(check, "team/shop", NAMES) == ()


def test_the_documented_lines_verify_a_call_and_refuse_another() -> None:
    (lines,) = blocks(REFERENCE, "python")
    signed = {"webhook-id": "fl_1", "webhook-timestamp": "1893499200"}
    signed["webhook-signature"] = "v1,other " + signature("hush", "fl_1", "1893499200", b"{}")
    given = {"base64": base64, "hmac": hmac, "secret": b"hush", "headers": signed}

    exec(lines, {**given, "body": b"{}"})  # noqa: S102 - the lines of our own page
    with pytest.raises(AssertionError):
        exec(lines, {**given, "body": b"[]"})  # noqa: S102 - the lines of our own page


def test_the_documented_file_of_servers_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "servers.toml"
    file.write_text(blocks(REFERENCE, "toml")[0])

    assert list(read(file)) == ["payments"]


def test_every_place_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")

    assert all(f"`{name}`" in text for name in (*queries.OWN_ARGUMENTS, *NAMES.arguments))
