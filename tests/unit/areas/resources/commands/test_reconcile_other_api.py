"""An API that is none of Azure's, as it is typed: ingested, planned, applied, shown and deleted."""

import asyncio
import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulated_api import SimulatedApi, description
from tests.unit.areas.resources.commands.test_reconcile import Type, run, written

__all__ = ["run"]
WANTED = """\
kind: cloud-resource
type: robots
resourceId: /robots/{welder}
properties: {name: welder, arms: 2}
"""


@pytest.fixture
def api(run: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedApi]:
    made = SimulatedApi()
    loop, ready, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with made.serving():
            ready.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(30)
    monkeypatch.setenv("FAIRLEAD_RESOURCES_CLOUD", "none")
    monkeypatch.setenv("FAIRLEAD_RESOURCES_API_URL", made.url)
    monkeypatch.setenv("FAIRLEAD_RESOURCES_TOKEN_FILE", str(tmp_path / "token"))
    monkeypatch.setenv("FAIRLEAD_RESOURCES_TOKEN_HEADER", "X-Api-Key")
    run("resources", "ingest", written(tmp_path, "robots.json", json.dumps(description())))
    try:
        yield made
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        with contextlib.closing(loop):
            assert not thread.is_alive()


@pytest.mark.requirement("resources R1", "resources R32")
def test_what_another_api_names_is_kept_from_a_file(
    run: Type, tmp_path: Path, api: SimulatedApi
) -> None:
    file = written(tmp_path, "welder.yaml", WANTED)
    assert run("resources", "plan", file).out.startswith("POST /robots\n")

    first = run("resources", "apply", file)
    again = run("resources", "apply", file)
    written(tmp_path, "welder.yaml", WANTED.replace("arms: 2", "arms: 4"))
    planned, third = run("resources", "plan", file), run("resources", "apply", file)

    assert (first.code, again.out, api.made) == (0, "nothing to change\n", 1), first.err
    assert planned.out.startswith("PATCH /robots/101\n")
    assert (third.code, api.robots[101]["arms"]) == (0, 4)
    assert "serial: s101" in run("resources", "show", "/robots/101").out
    assert run("resources", "delete", file).code == 0
    assert api.robots == {}


def test_what_is_there_already_is_imported_by_its_id(
    run: Type, tmp_path: Path, api: SimulatedApi
) -> None:
    api.robots[7] = {"name": "old", "arms": 1}

    then = run("resources", "import", "/robots/7")

    assert then.out.splitlines()[-3:] == ["properties:", "  name: old", "  arms: 1"]
    assert api.writes == []


def test_braces_are_for_ids_that_the_api_gives(
    run: Type, tmp_path: Path, api: SimulatedApi
) -> None:
    named = written(tmp_path, "named.yaml", WANTED.replace("{welder}", "welder"))

    then = run("resources", "apply", named)

    assert then.code != 0
    assert "end resourceId in {NAME}" in then.err
    assert api.made == 0
