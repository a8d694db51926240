"""What goes wrong is told without internals, and what is too large is not read."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog
from starlette.types import Message, Receive, Scope, Send

from fairlead import errors
from fairlead.access import tokens
from fairlead.web import errors as web_errors
from tests.unit.web import rig

COMMANDS = "/api/v1/streams/depot/a/commands"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path) as running:
        yield running


async def test_an_oversized_body_is_refused_by_its_length(site: rig.Site) -> None:
    body = b'{"type": "Order", "data": "' + b"x" * web_errors.MAX_BODY + b'"}'

    answer = await site.client.post(
        COMMANDS, content=body, headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 413
    assert answer.json()["error"]["code"] == "too_large"


async def test_an_oversized_body_of_unknown_length_is_refused_while_it_arrives(
    site: rig.Site,
) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 65_536
            yield b"x" * 65_536

    answer = await site.client.post(
        COMMANDS, content=endless(), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 413
    assert read <= web_errors.MAX_BODY + 2 * 65_536


async def test_a_body_that_does_not_come_to_its_end_is_given_up() -> None:
    silence = asyncio.Event()

    async def trickle() -> Message:
        await silence.wait()
        raise AssertionError

    async def read_all(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    limit = web_errors.BodyLimit(read_all, seconds=0.01)
    with pytest.raises(web_errors.TooSlow) as refused:
        await limit({"type": "http", "headers": []}, trickle, unused)

    assert refused.value.http_status == 408


async def test_a_client_may_listen_for_long_once_its_body_is_there() -> None:
    sent: list[Message] = [
        {"type": "http.request", "body": b"", "more_body": False},
        {"type": "http.disconnect"},
    ]
    heard: list[str] = []

    async def receive() -> Message:
        if len(sent) == 1:
            await asyncio.sleep(0.05)
        return sent.pop(0)

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        heard.extend([(await receive())["type"], (await receive())["type"]])

    await web_errors.BodyLimit(listen, seconds=0.01)(
        {"type": "http", "headers": []}, receive, unused
    )

    assert heard == ["http.request", "http.disconnect"]


async def unused(_: Message) -> None:
    raise AssertionError


async def test_a_command_larger_than_a_row_is_refused(site: rig.Site) -> None:
    data = {"depot": "x" * 1_048_600, "trips": 1}

    answer = await site.client.post(COMMANDS, json={"type": "Order", "data": data})

    assert answer.status_code == 400
    assert "too large" in answer.json()["error"]["message"]
    assert (await site.client.get("/api/v1/streams")).json()["items"] == []


async def test_a_surprise_is_logged_and_told_without_internals(site: rig.Site) -> None:
    @site.app.get("/surprise")
    async def surprise() -> None:
        raise RuntimeError("the password is swordfish")

    with structlog.testing.capture_logs() as lines:
        answer = await site.client.get("/surprise")

    assert answer.status_code == 500
    assert "swordfish" not in answer.text
    told = re.fullmatch(r"search the log for (\w+)", answer.json()["error"]["hint"])
    assert told is not None
    assert [line["request"] for line in lines if line["event"] == "request_failed"] == [told[1]]


async def test_a_store_that_is_away_is_told_as_such(site: rig.Site) -> None:
    with rig.stopped(site.engine):
        answer = await site.client.get("/api/v1/streams")

    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "1"
    assert answer.json()["error"]["code"] == "unavailable"


async def test_a_wrong_method_is_told_in_the_same_words(site: rig.Site) -> None:
    answer = await site.client.delete("/api/v1/streams")

    assert answer.status_code == 405
    assert answer.json()["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.NotFound, "not_found"),
        (errors.Unauthorised, "unauthorised"),
        (errors.Corrupt, "corrupt"),
        (web_errors.TooLarge, "too_large"),
    ],
)
def test_every_error_has_a_code_for_programs(error: type[errors.FairleadError], code: str) -> None:
    assert web_errors.code(error("no", hint="yes")) == code


@pytest.mark.parametrize("path", ["/api/v1/me", "/streams", "/metrics"])
async def test_whoever_is_unknown_hears_nothing_of_the_database(
    site: rig.Site, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    async def away(_: object) -> None:
        raise errors.Unavailable("cannot reach the database: db1.internal:5432/fairlead", hint="x")

    token = await site.token(tokens.Role.VIEWER)
    monkeypatch.setattr(site.engine, "read", away)

    answer = await site.client.get(path, headers=rig.bearer(token))

    assert answer.status_code == 503
    assert "db1" not in answer.text
    assert "the store did not answer" in answer.text
