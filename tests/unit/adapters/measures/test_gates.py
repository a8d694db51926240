"""Gates, numbers and news over the web, as a rollout asks for them."""

import contextlib
import json
from collections.abc import AsyncIterator

import pytest

from fairlead import errors
from fairlead.adapters.measures import gates
from fairlead.adapters.measures.gates import WebGates
from fairlead.adapters.measures.hooks import Hooks, Hosts, Manners
from fairlead.domain.analysis.conditions import Answered, Silent, Unanswered
from fairlead.domain.rollouts import messages
from fairlead.domain.rollouts.spec import Check, Source, When
from tests.unit.adapters.measures.about import NOW, about, naming
from tests.unit.adapters.measures.stand import Stand, answer, standing


@contextlib.asynccontextmanager
async def asking(*answers: bytes, news: str = "") -> AsyncIterator[tuple[WebGates, Stand]]:
    hooks = Hooks(Manners(deadline_seconds=1.0))
    async with hooks.open(), standing(answers) as stand:
        news_url = f"{stand.origin}{news}" if news else ""
        yield WebGates(hooks, Hosts.read(stand.origin), naming, news_url), stand


def gate(stand: Stand, path: str = "/gate") -> Check:
    return Check("board", f"{stand.origin}{path}", Source.GATE)


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
        await web.is_open(gate(stand), about(share=50, since=NOW))

    first, again, later = (heard.headers["webhook-id"] for heard in stand.heard)
    assert first == again != later
    assert json.loads(stand.heard[0].body) == {
        "rollout": "team/shop",
        "check": "board",
        "when": "step",
        "share": 10,
        "since": "2030-01-01T11:50:00Z",
        "primary": {"revision": "v1", "label": "v1"},
        "canary": {"revision": "v2", "label": "v2"},
    }


@pytest.mark.parametrize(
    ("told", "kind", "said"),
    [
        (answer(401, b"bad signature"), errors.Unauthorised, "status 401: bad signature"),
        (answer(404, b"<h1>where?</h1>"), errors.Rejected, "status 404"),
        (answer(302, b"", "Location: http://127.0.0.1/"), errors.Rejected, "elsewhere"),
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
        other = Check("board", f"http://localhost:{stand.port}/", Source.GATE)
        with pytest.raises(errors.Rejected, match="may not be called: http://localhost"):
            await web.is_open(other, about())
        number = await web.read(Check("n", other.query, Source.WEB), about())

    assert isinstance(number, Unanswered)
    assert "FAIRLEAD_HOOKS_HOSTS" in number.reason
    assert not stand.heard


@pytest.mark.parametrize(
    ("body", "at", "expected"),
    [
        (b'{"data": [{"rate": 0.5}]}', "#/data/0/rate", Answered(0.5)),
        (b"7", "", Answered(7)),
        (b"[1, 2]", "", Answered([1, 2])),
        (b'{"data": []}', "#/data/0/rate", Silent("nothing at /data/0/rate")),
        (b'{"rate": null}', "#/rate", Silent("nothing at /rate")),
        (b"null", "", Silent("nothing at the whole page")),
        (b'{"a b": 1}', "#/a%20b", Answered(1)),
    ],
)
async def test_a_number_is_read_where_the_pointer_says(
    body: bytes, at: str, expected: Answered | Silent
) -> None:
    async with asking(answer(200, body)) as (web, stand):
        check = Check("orders", f"{stand.origin}/numbers{at}", Source.WEB)
        assert await web.read(check, about()) == expected

    assert stand.heard[0].line == "GET /numbers HTTP/1.1"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (answer(200, b"<html>"), "does not answer in JSON: <html>"),
        (answer(200, b'{"rate": NaN}'), "does not answer in JSON"),
        (answer(200, b"[" * 60_000), "does not answer in JSON"),
        (answer(404), "status 404"),
        (answer(503), "within 1 s"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "within 1 s"),
        (answer(200, b" " * 100_000), "more than 65536 bytes"),
    ],
)
async def test_a_page_that_cannot_be_read_is_an_error(told: bytes, said: str) -> None:
    async with asking(told) as (web, stand):
        found = await web.read(Check("orders", f"{stand.origin}/", Source.WEB), about())

    assert isinstance(found, Unanswered)
    assert said in found.reason


async def test_a_page_without_content_is_no_data() -> None:
    async with asking(answer(204)) as (web, stand):
        found = await web.read(Check("orders", f"{stand.origin}/", Source.WEB), about())

    assert found == Silent("the page has no content")


async def test_a_page_is_asked_about_the_slot() -> None:
    async with asking(answer(200, b"1")) as (web, stand):
        query = f"{stand.origin}/{{{{ namespace }}}}/{{{{ target }}}}?of={{{{ rollout }}}}"
        await web.read(Check("canary", query, Source.WEB), about())
        await web.read(Check("primary", query, Source.WEB, When.START), about())

    assert [heard.line.split(" ")[1] for heard in stand.heard] == [
        "/team/shop-canary?of=team/shop",
        "/team/shop?of=team/shop",
    ]


@pytest.mark.parametrize(
    "query",
    [
        "https://{{ namespace }}.example/",
        "https://gate.example{{ namespace }}/",
        "{{ namespace }}",
        "https://gate.example/#/{{ namespace }}",
    ],
)
def test_no_argument_becomes_a_host_or_a_pointer(query: str) -> None:
    with pytest.raises(errors.Rejected, match="where none may stand"):
        gates.address(query, {"namespace": "evil"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a/../b", "https://g.example/x/a%2F..%2Fb/y"), ("?#", "https://g.example/x/%3F%23/y")],
)
def test_an_argument_stays_in_its_part_of_the_address(value: str, expected: str) -> None:
    assert gates.address("https://g.example/x/{{ a }}/y", {"a": value}) == (expected, "")


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_an_argument_that_would_change_the_path_is_refused(value: str) -> None:
    with pytest.raises(errors.Rejected, match="no part of an address"):
        gates.address("https://g.example/x/{{ a }}/y", {"a": value})


async def test_news_are_posted_where_the_operator_says() -> None:
    news = messages.Notify("team/shop", "TakenBack", "errors at 7 %", NOW)

    async with asking(answer(), news="/news") as (web, stand):
        await web.notify(news)
        await web.notify(news)
    async with asking(answer()) as (quiet, nobody):
        await quiet.notify(news)

    assert json.loads(stand.heard[0].body) == {
        "rollout": "team/shop",
        "kind": "TakenBack",
        "text": "errors at 7 %",
        "at": "2030-01-01T12:00:00Z",
    }
    assert stand.heard[0].headers["webhook-id"] == stand.heard[1].headers["webhook-id"]
    assert not nobody.heard


async def test_news_that_are_refused_are_an_error_for_the_outbox() -> None:
    async with asking(answer(400, b"what?"), news="/news") as (web, _):
        with pytest.raises(errors.Rejected, match="status 400: what"):
            await web.notify(messages.Notify("team/shop", "TakenBack", "x", NOW))
