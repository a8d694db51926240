"""Gates over the web, as a release asks for them."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from fairlead import errors
from fairlead.checks.gates.webhook import WebhookGate
from fairlead.checks.spec import Check, CheckKind
from fairlead.clients.webhooks import Hooks, Hosts, Manners
from tests.unit.checks.about import NOW, about
from tests.unit.checks.web_server import Stand, answer, standing


@contextlib.asynccontextmanager
async def asking(*answers: bytes) -> AsyncIterator[tuple[WebhookGate, Stand]]:
    hooks = Hooks(Manners(deadline_seconds=1.0))
    async with hooks.open(), standing(answers) as stand:
        yield WebhookGate(hooks, Hosts.read(stand.origin)), stand


def gate(stand: Stand, path: str = "/gate") -> Check:
    return Check("board", f"{stand.origin}{path}", CheckKind.GATE)


@pytest.mark.parametrize(
    ("told", "is_open", "said"),
    [
        (answer(200, b'{"open": true, "reason": "board agreed"}'), True, "board agreed"),
        (answer(200, b'{"open": false, "reason": "meeting\\nat 3"}'), False, "meeting at 3"),
        (answer(200, b"OK"), True, "OK"),
        (answer(202), True, "status 202"),
        (answer(204), True, "status 204"),
        (answer(200, b'{"open": "false"}'), True, '{"open": "false"}'),
        (answer(403, b"Forbidden"), False, "Forbidden"),
        (answer(409, b'{"reason": "freeze"}'), False, "freeze"),
        (answer(423), False, "status 423"),
    ],
)
async def test_a_gate_is_open_or_closed(told: bytes, is_open: bool, said: str) -> None:  # noqa: FBT001 - a column of the table
    async with asking(told) as (web, stand):
        assert await web.is_open(gate(stand), about()) == (is_open, said)


async def test_a_gate_hears_what_it_is_asked_about() -> None:
    async with asking(answer()) as (web, stand):
        for _ in range(2):
            await web.is_open(gate(stand), about())
        await web.is_open(gate(stand), about(weight=50, since=NOW))

    first, again, later = (heard.headers["webhook-id"] for heard in stand.heard)
    assert first == again != later
    assert json.loads(stand.heard[0].body) == {
        "rollout": "team/shop",
        "check": "board",
        "when": "step",
        "weight": 10,
        "since": "2030-01-01T11:50:00Z",
        "primary": {"revision": "v1", "label": "v1"},
        "canary": {"revision": "v2", "label": "v2"},
    }


@pytest.mark.parametrize(
    ("told", "kind", "said"),
    [
        (answer(401, b"bad signature"), errors.Unauthorised, "status 401: bad signature"),
        (answer(404, b"<h1>where?</h1>"), errors.Rejected, "status 404"),
        (answer(302, b"", "Location: http://127.0.0.1/"), errors.Rejected, "redirects"),
        (answer(500, b"oops"), errors.Unavailable, "within 1 s: status 500 oops"),
    ],
)
async def test_a_gate_that_cannot_answer_is_neither(told: bytes, kind: type, said: str) -> None:
    async with asking(told) as (web, stand):
        with pytest.raises(errors.FairleadError, match=said) as raised:
            await web.is_open(gate(stand), about())

    assert type(raised.value) is kind


async def test_a_host_that_nobody_allowed_is_not_called() -> None:
    async with asking(answer()) as (web, stand):
        other = Check("board", f"http://localhost:{stand.port}/", CheckKind.GATE)
        with pytest.raises(errors.Rejected, match="may not be called: http://localhost"):
            await web.is_open(other, about())

    assert not stand.heard
