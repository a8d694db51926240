"""What an API shows of a resource: there, not there, or not to be told."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from fairlead import errors
from fairlead.areas.resources.api import ResourceApi
from fairlead.areas.resources.settings import ResourcesSettings

ID = "/subscriptions/s/sets/a"


@contextlib.asynccontextmanager
async def answering(status: int, text: str, folder: Path) -> AsyncIterator[list[web.Request]]:
    """An API that says one thing, and what it was asked; its address is in the folder."""
    asked: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response(status=status, text=text, content_type="application/json")

    app = web.Application()
    app.router.add_get("/{tail:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        (folder / "url").write_text(f"http://{host}:{port}")
        (folder / "token").write_text("a-token\n")
        yield asked
    finally:
        await runner.cleanup()


def api(folder: Path) -> ResourceApi:
    url = (folder / "url").read_text()
    return ResourceApi.of(ResourcesSettings(url, str(folder / "token")))


async def test_it_is_asked_once_with_its_version_as_the_holder_of_the_token(tmp_path: Path) -> None:
    async with answering(200, '{"name": "a"}', tmp_path) as asked:
        shown = await api(tmp_path).get(ID, "2022-03-01")

    assert shown == {"name": "a"}
    (request,) = asked
    assert request.path_qs == f"{ID}?api-version=2022-03-01"
    assert request.headers["Authorization"] == "Bearer a-token"


@pytest.mark.parametrize("status", [404, 410])
async def test_what_is_not_there_is_none(status: int, tmp_path: Path) -> None:
    async with answering(status, "{}", tmp_path):
        assert await api(tmp_path).get(ID, "1") is None


@pytest.mark.parametrize(
    ("status", "text", "fate"),
    [
        (400, "{}", errors.Rejected),
        (401, "{}", errors.Forbidden),
        (429, "{}", errors.Unavailable),
        (503, "{}", errors.Unavailable),
        (200, "[]", errors.Unavailable),
        (200, "<html>", errors.Unavailable),
    ],
)
async def test_what_is_no_answer_is_told_by_its_fate(
    status: int, text: str, fate: type[errors.FairleadError], tmp_path: Path
) -> None:
    async with answering(status, text, tmp_path):
        with pytest.raises(fate) as told:
            await api(tmp_path).get(ID, "1")

    assert told.value.hint
    assert "a-token" not in str(told.value)
