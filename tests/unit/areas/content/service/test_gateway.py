"""Who asks, by what a gateway says: a field of its header, and a refusal where it has none."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from fairlead import errors
from fairlead.areas.content.service import bearer, gateway
from fairlead.areas.content.service.catalogue import Refusal
from fairlead.areas.content.settings import ContentSettings

IDENTIFY = gateway.identity("identity.system.cluster_id").identify
SENT = {"identity": {"org_id": "1", "system": {"cluster_id": "cluster-1\xff"}}}


def header(words: Any) -> str:
    return base64.b64encode(json.dumps(words, ensure_ascii=False).encode()).decode()


def ask(sent: str) -> str | Refusal:
    return IDENTIFY({"x-rh-identity": sent})


def test_the_field_of_the_header_says_who_asks() -> None:
    assert ask(header(SENT)) == "cluster-1\xff"
    # As other gateways write base64.
    assert ask(header(SENT).rstrip("=").replace("+", "-").replace("/", "_")) == "cluster-1\xff"
    assert ask(header({**SENT, "more": "x" * 4000})) == "cluster-1\xff"


def test_without_the_header_nobody_is_let_in() -> None:
    assert IDENTIFY({"user-agent": "insights-operator/4 cluster/a"}) == gateway.MISSING
    assert ask("") == gateway.MISSING


@pytest.mark.parametrize(
    "sent",
    [
        "x",
        "{}",
        header([]),
        header({"identity": "system"}),
        header({"identity": {"system": {"cluster_id": 7}}}),
        header({"identity": {"system": {"cluster_id": ""}}}),
        base64.b64encode(b"[" * 3000 + b"]" * 3000).decode(),
    ],
)
def test_what_names_nobody_is_refused(sent: str) -> None:
    assert ask(sent) == gateway.INVALID


@given(strategies.text(min_size=1) | strategies.binary(min_size=1).map(lambda it: it.hex()))
def test_whatever_is_sent_is_refused(sent: str) -> None:
    assert isinstance(ask(sent), Refusal)


def test_it_is_read_only_where_the_settings_say_so(tmp_path: Path) -> None:
    assert bearer.identity(ContentSettings()) is None
    claim = "identity.org_id"

    by_gateway = bearer.identity(ContentSettings(content_gateway_claim=claim))

    assert by_gateway is not None
    assert by_gateway.identify({"x-rh-identity": header(SENT)}) == "1"
    keys = str(tmp_path / "jwks.json")
    both = ContentSettings(content_gateway_claim=claim, content_jwks_file=keys)
    with pytest.raises(errors.Rejected, match="both a token and a gateway"):
        bearer.identity(both)
