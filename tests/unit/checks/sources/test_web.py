"""Numbers on pages, as a check asks for them."""

import contextlib
from collections.abc import AsyncIterator

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answered, Silent, Unanswered
from fairlead.checks.sources import web as web_source
from fairlead.checks.sources.web import WebSource
from fairlead.checks.spec import Check, When
from fairlead.clients.webhooks import Hooks, Hosts, Manners
from tests.unit.checks.about import about, naming
from tests.unit.checks.web_server import Stand, answer, standing


@contextlib.asynccontextmanager
async def asking(*answers: bytes, seconds: float = 30.0) -> AsyncIterator[tuple[WebSource, Stand]]:
    hooks = Hooks(Manners(deadline_seconds=seconds))
    async with hooks.open(), standing(answers) as stand:
        yield WebSource(hooks, Hosts.read(stand.origin), naming), stand


async def test_a_host_that_nobody_allowed_is_not_called() -> None:
    async with asking(answer()) as (web, stand):
        number = await web.ask(Check("n", f"http://localhost:{stand.port}/"), about())

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
        check = Check("orders", f"{stand.origin}/numbers{at}", source="web")
        assert await web.ask(check, about()) == expected

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
    # Short only where the deadline itself is told: a busy machine may need its time for the rest.
    seconds = 1.0 if "within" in said else 30.0
    async with asking(told, seconds=seconds) as (web, stand):
        found = await web.ask(Check("orders", f"{stand.origin}/", source="web"), about())

    assert isinstance(found, Unanswered)
    assert said in found.reason


async def test_a_page_without_content_is_no_data() -> None:
    async with asking(answer(204)) as (web, stand):
        found = await web.ask(Check("orders", f"{stand.origin}/", source="web"), about())

    assert found == Silent("the page has no content")


async def test_a_page_is_asked_about_the_slot() -> None:
    async with asking(answer(200, b"1")) as (web, stand):
        query = f"{stand.origin}/{{{{ namespace }}}}/{{{{ target }}}}?of={{{{ rollout }}}}"
        await web.ask(Check("canary", query, source="web"), about())
        await web.ask(Check("primary", query, when=When.START, source="web"), about())

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
        web_source.address(query, {"namespace": "evil"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a/../b", "https://g.example/x/a%2F..%2Fb/y"), ("?#", "https://g.example/x/%3F%23/y")],
)
def test_an_argument_stays_in_its_part_of_the_address(value: str, expected: str) -> None:
    assert web_source.address("https://g.example/x/{{ a }}/y", {"a": value}) == (expected, "")


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_an_argument_that_would_change_the_path_is_refused(value: str) -> None:
    with pytest.raises(errors.Rejected, match="no part of an address"):
        web_source.address("https://g.example/x/{{ a }}/y", {"a": value})
