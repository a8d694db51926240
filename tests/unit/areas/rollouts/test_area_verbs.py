"""One more declaration of a verb, and nothing else, is seen wherever people ask for verbs."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from fairlead import catalog, settings
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.areas.rollouts.kubernetes import wiring
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.values import Confirmation, Verb
from tests.fakes import fleet
from tests.unit.areas.rollouts.kubernetes.snapshot import FakeSnapshot, Json, canary
from tests.unit.web import rig
from tools import reference

HOLD = Verb(
    name="hold",
    command="Pause",
    help="Hold a rollout.",
    usage="Hold rollout NAME until somebody resumes it.",
    label="Hold it",
    tone="danger",
    confirm=Confirmation("Hold {name}?", "Hold this rollout?", "Its weight stops rising.", "Hold"),
    takes_reason=True,
    restrains=True,
    annotation_is_reason=True,
)
"""Another name for a command that the machine knows, so that only the declaration is new."""


@pytest.fixture(autouse=True)
def one_more(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(VERBS, HOLD.name, HOLD)
    monkeypatch.setattr(app, "COMMANDS", app.commands(catalog.AREAS))
    yield
    # A command sends log lines to its own standard error, which ends with its test.
    structlog.reset_defaults()


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as running:
        await fleet.halfway(running.engine, "shop")
        yield running


async def test_the_api_serves_it(site: rig.Site) -> None:
    offered = (await site.client.get("/api/v1/rollouts/shop")).json()["verbs"]
    answer = await site.client.post("/api/v1/rollouts/shop/hold", json={"why": "stocktaking"})

    assert offered == ["approve", "promote", "pause", "abort", "delete", "hold"]
    assert answer.status_code == 200, answer.text
    assert answer.json()["rollout"]["phase"] == "Paused"
    assert answer.json()["rollout"]["sentence"].endswith(": stocktaking")


async def test_the_page_has_its_button_and_its_dialog(site: rig.Site) -> None:
    text = (await site.client.get("/rollouts/shop", headers={"Accept": "text/html"})).text

    button = re.search(r'<button [^>]*data-verb="hold"[^>]*>[^<]*</button>', text)
    assert button is not None
    assert 'class="danger"' in button[0]
    assert button[0].endswith(">Hold it&hellip;</button>")
    dialog = re.search(r'data-dialog="([^"]*)"', button[0])
    assert dialog is not None
    assert json.loads(html.unescape(dialog[1])) == {
        "title": "Hold this rollout?",
        "text": "Its weight stops rising.",
        "yes": "Hold",
        "danger": True,
        "why": True,
        "revision": False,
    }


def test_the_terminal_has_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    behind = fleet.Fleet()
    for variable in ("FAIRLEAD_DATABASE_URL", "FAIRLEAD_SERVER", "FAIRLEAD_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    asyncio.run(_fill(tmp_path, behind))

    def typed(*words: str) -> str:
        capsys.readouterr()
        assert app.run(words, CliContext(installation=behind.cast)) == 0
        return capsys.readouterr().out

    assert re.search(r"hold +Hold a rollout\.", typed("--help"))
    assert "Hold rollout NAME until somebody resumes it." in typed("hold", "--help")
    assert "stocktaking" in typed("hold", "shop", "--yes", "--why", "stocktaking")


async def _fill(folder: Path, behind: fleet.Fleet) -> None:
    chosen = settings.Settings(store=settings.StoreSettings(state_dir=folder))
    store = behind.cast().store(chosen.store)
    store.migrate()
    async with behind.cast().engine(chosen, store).running() as engine:
        await fleet.halfway(engine, "shop")
        await engine.projector.catch_up()


@pytest.mark.parametrize(("value", "why"), [("true", ""), ("stocktaking", "stocktaking")])
def test_an_annotation_requests_it(value: str, why: str) -> None:
    seen = _annotated(value)

    (request,) = wiring.canaries().observe(seen, FakeSnapshot()).requests.values()

    assert (request.value, request.command) == (value, messages.Pause("annotation", why))


def test_an_object_that_stopped_making_sense_may_still_request_it() -> None:
    canaries = wiring.canaries()
    canaries.observe(canary(), FakeSnapshot())
    broken = _annotated("true", strategy={"steps": [50, 20]})
    broken["metadata"]["generation"] = 2

    assert set(canaries.observe(broken, FakeSnapshot()).requests) == {"hold"}


def test_the_page_of_commands_tells_it() -> None:
    assert "## `fairlead hold`" in reference.commands_page(catalog.AREAS)


def _annotated(value: str, **spec: Any) -> Json:
    made = canary(**spec)
    made["metadata"]["annotations"] = {"fairlead.dev/hold": value}
    return made
