"""What goes wrong is told without internals, and what is too large is not read."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog

from fairlead import errors
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
    told = re.fullmatch(r"look for (\w+) in the log", answer.json()["error"]["hint"])
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
