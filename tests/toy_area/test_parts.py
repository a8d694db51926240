"""All that an area can bring comes from its folder alone, and every place holds what it says."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from fairlead import bootstrap, catalog, errors, loading, settings
from fairlead.area import Area, operator_part, parts, web_part
from fairlead.areas.deployments.domain.deployment import events as deployments
from fairlead.areas.deployments.domain.messages import FreezeEnded
from fairlead.areas.deployments.domain.plan import graph
from fairlead.areas.deployments.domain.spec import Freeze, Policy
from fairlead.cli import app
from fairlead.console.context import CliContext
from fairlead.console.nouns import Noun
from fairlead.engine import machine, messages, service, visibility
from fairlead.engine.children import Children
from fairlead.engine.messages import Cancel, ChildEnded, Decision
from fairlead.engine.testing import START, Given
from tests.toy_area import machine as lamp
from tests.toy_area.area import LAMPS
from tests.toy_area.platform import METER
from tests.toy_area.settings import LampSettings
from tests.unit.areas.deployments.domain.samples import BARE
from tests.unit.web import rig
from tools import reference

ALL = (*catalog.AREAS, LAMPS)
CORES = [parts.core(area) for area in ALL]
PLAN = messages.stream_name("plan", "a")


@pytest.mark.parametrize("area", ALL, ids=lambda area: area.name)
def test_every_place_of_an_area_holds_what_it_must(area: Area) -> None:
    assert parts.core(area).machines or area.commands
    for command in area.commands.values():
        assert loading.load(command.place, click.Command).help
    for word, place in area.nouns.items():
        assert word in loading.load(place, Noun).words
    reached = {name for place in area.nouns.values() for name in loading.load(place, Noun).verbs}
    assert reached == set(area.verbs) == {verb.name for verb in area.verbs.values()}
    group = parts.settings_group(area)
    assert group is None or settings.described([group])
    kinds = operator_part.load(area)
    assert kinds is None or kinds.kinds
    mount = web_part.load(area)
    assert mount is None or (mount.apis and mount.navigation == area.navigation)


def test_no_two_areas_have_a_command_a_noun_or_a_machine_of_one_name() -> None:
    commands = [name for area in ALL for name in area.commands]
    # A verb may be of several areas: it is one command, which finds the noun by its name.
    commands += {name for area in ALL for name in area.verbs}
    nouns = [word for area in ALL for word in area.nouns]
    machines = [one.name for one in parts.machines(CORES)]

    for names in (commands, nouns, machines):
        assert sorted(set(names)) == sorted(names)


@dataclass(frozen=True, slots=True)
class Site:
    """The program with lamps, its web app asked without a socket."""

    site: rig.Site
    given: bootstrap.Installation


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    chosen = bootstrap.installation(ALL).settings({"FAIRLEAD_LAMP_WATTS": "25"})
    # Rollouts run processes; lamps are what is tried.
    given = bootstrap.with_platforms(chosen, bootstrap.installation((LAMPS,)))
    async with (
        rig.site(tmp_path, replace(given, areas=ALL)) as running,
        given.in_background(running.engine),
    ):
        yield Site(running, given)


async def lit(site: Site, name: str, watts: int) -> dict[str, Any]:
    body = {"type": "Light", "data": {"name": name, "watts": watts}}
    await site.site.client.post(f"/api/v1/streams/lamp/{name}/commands", json=body)
    return await site.site.settled(f"lamp/{name}")


async def test_a_lamp_shines_by_the_platform_within_its_setting(site: Site) -> None:
    found = await lit(site, "desk", 60)

    meter = site.given.services.find(METER)
    assert found["data"] == {"watts": 25}
    assert meter is not None
    assert (meter.watts, meter.running) == (25, True)


async def test_its_api_page_and_navigation_are_there(site: Site) -> None:
    await lit(site, "desk", 60)

    listed = (await site.site.client.get("/api/v1/lamps")).json()
    page = (await site.site.client.get("/lamps")).text
    other = (await site.site.client.get("/streams")).text

    assert [one["name"] for one in listed["items"]] == ["lamp/desk"]
    assert "<p>25 W so far</p>" in page
    assert '<a href="/lamps" aria-current="page">Lamps</a>' in page
    assert '<a href="/lamps">Lamps</a>' in other


async def test_its_projection_is_folded(site: Site) -> None:
    await lit(site, "desk", 60)
    await site.site.engine.projector.catch_up()

    rows = (await site.site.client.get("/api/v1/projections/lamps")).json()

    assert [row["data"] for row in rows["items"]] == [{"name": "desk", "last": "WentOut"}]


def test_its_setting_is_known_and_a_slip_of_it_is_refused() -> None:
    given = bootstrap.installation(ALL)

    assert given.settings({"FAIRLEAD_LAMP_WATTS": "60"}).of(LampSettings).lamp_watts == 60
    assert given.settings({}).of(LampSettings).lamp_watts == 40
    with pytest.raises(errors.Rejected, match="FAIRLEAD_LAMP_WATS"):
        given.settings({"FAIRLEAD_LAMP_WATS": "60"})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    for variable in ("FAIRLEAD_DATABASE_URL", "FAIRLEAD_SERVER", "FAIRLEAD_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    given = bootstrap.installation(ALL)
    given.store(given.settings().store).migrate()
    return tmp_path


def test_one_entry_in_the_catalogue_adds_command_noun_and_verb(store: Path) -> None:
    def typed(*words: str) -> str:
        command = [sys.executable, "-m", "tests.toy_area.entry", *words]
        done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
        return done.stdout

    commands = [line.split(maxsplit=1) for line in typed("--help").splitlines()]
    assert ["light", "Light a lamp."] in commands
    assert ["douse", "Put a lamp out."] in commands
    assert "lamps" in typed("get", "--help").replace("\n", " ").split(" or streams")[0]
    typed("light", "desk", "60")
    assert typed("get", "lamps").split() == ["LAMP", "STATE", "desk", "Lit"]
    assert "lamp/desk" in typed("get", "lamp", "desk")
    assert "desk" in typed("get", "lamps", "--where", "watts>=60")
    assert typed("get", "lamps", "--where", "watts<60") == ""
    assert typed("douse", "desk").split() == ["lamp/desk", "Out"]


def test_watch_shows_its_changes(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    context = CliContext(installation=lambda: bootstrap.installation(ALL))
    app.run(["submit", "lamp/desk", "Light", '{"name": "desk", "watts": 60}'], context)

    def stop(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", stop)
    capsys.readouterr()
    code = app.run(["watch", "lamps"], context)

    assert code == app.STOPPED
    assert "lamp/desk  Lit" in capsys.readouterr().out


def test_its_settings_and_commands_are_documented() -> None:
    assert "| `FAIRLEAD_LAMP_WATTS` | `40` |" in reference.settings_page(ALL)
    assert "## `fairlead light`" in reference.commands_page(ALL)
    assert "## `fairlead douse`" in reference.commands_page(ALL)


@dataclass(frozen=True, slots=True)
class Begin:
    """Command: take this step."""

    step: str
    words: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Begun:
    """Event, and state: the step is under way."""

    steps: Children = Children()


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Event: the step was told to end."""


@dataclass(frozen=True, slots=True)
class Done:
    """Event, and state: the step has ended."""

    succeeded: bool
    reason: str


@dataclass(frozen=True, slots=True)
class New:
    """State: nothing asked yet."""


def plan(steps: Mapping[str, parts.StepKind]) -> machine.AnyMachine:
    """A machine that walks one step and knows no area."""

    def decide(state: object, command: object, _now: datetime) -> Decision:
        match state, command:
            case New(), Begin(step, words):
                send = steps[step].start(PLAN, "p1", words)
                return Decision((Begun(Children().started(send.stream)),), sends=(send,))
            case Begun(children), Cancel(reason):
                return Decision((Cancelled(),), sends=children.cancel(reason))
            case Begun(), ChildEnded(_, succeeded, reason):
                return Decision((Done(succeeded, reason),))
            case _:
                return Decision()

    return machine.Machine(
        name="plan",
        initial=New(),
        decide=decide,
        evolve=lambda state, event: state if isinstance(event, Cancelled) else event,
        ended=lambda state: isinstance(state, Done),
        vocabulary=machine.Vocabulary(
            New | Begun | Done, Begin | ChildEnded | Cancel, Begun | Cancelled | Done
        ),
        children=tuple(kind.machine for kind in steps.values()),
    )


async def test_a_parent_starts_its_step_and_hears_of_its_end(tmp_path: Path) -> None:
    chosen = settings.Settings(store=settings.StoreSettings(state_dir=tmp_path))
    given = bootstrap.with_platforms(chosen, bootstrap.installation((LAMPS,)))
    given = replace(given, machines=[*given.machines, plan(parts.step_kinds(CORES))])
    kept = given.store(chosen.store)
    kept.migrate()
    async with given.engine(chosen, kept).running() as engine:
        begin = Begin("light-lamp", {"name": "desk", "watts": 30})
        await engine.submit(PLAN, begin, messages.command_id("begin"))
        found = await ended(engine, PLAN)
        child = await engine.read(lambda s: visibility.stream(s, lamp.stream("desk")))

    assert found.data == {"succeeded": True, "reason": "shone with 30 W"}
    assert child.state == "Out"


async def test_a_plan_that_is_cancelled_ends_its_step(tmp_path: Path) -> None:
    chosen = settings.Settings(store=settings.StoreSettings(state_dir=tmp_path))
    given = bootstrap.installation((LAMPS,))
    given = replace(given, machines=[*given.machines, plan(parts.step_kinds(CORES))])
    kept = given.store(chosen.store)
    kept.migrate()
    # Nobody lets it shine, so it is lit until it is told otherwise.
    async with given.engine(chosen, kept, perform=False).running() as engine:
        begin = Begin("light-lamp", {"name": "desk", "watts": 30})
        await engine.submit(PLAN, begin, messages.command_id("begin"))
        await engine.submit(PLAN, Cancel("too bright"), messages.command_id("cancel"))
        found = await engine.read(lambda s: visibility.stream(s, PLAN))
        child = await engine.read(lambda s: visibility.stream(s, lamp.stream("desk")))

    assert found.data == {"succeeded": False, "reason": "too bright"}
    assert (child.state, child.data) == ("Out", {"watts": 0})


@pytest.mark.parametrize(
    ("watts", "status", "reason"), [(30, "DONE", ""), (0, "FAILED", "shone with 0 W")]
)
def test_the_deployments_own_machine_walks_a_step_of_another_area(
    watts: int, status: str, reason: str
) -> None:
    known = {one.name: one for one in bootstrap.installation(ALL).machines}
    plan = graph.Plan(
        "full", (graph.Step("Lamp", "light-lamp", (), {"name": "desk", "watts": watts}),)
    )
    frozen = Freeze(START, START + timedelta(hours=1), "holidays")
    spec = replace(BARE, policy=Policy(freezes=(frozen,)))
    state = known["deployment"].initial
    for event in (deployments.Requested("d1", spec, stored=True), deployments.StackAvailable(plan)):
        state = known["deployment"].evolve(state, event)

    begun = Given(known["deployment"], state, START + timedelta(hours=2)).when(FreezeEnded())
    (light,) = begun.decision.sends
    lit = Given(known["lamp"], lamp.Dark()).when(light.command)
    (told,) = Given(known["lamp"], lit.state).when(lamp.Burned(watts)).decision.sends
    over = Given(known["deployment"], begun.state).when(told.command)

    assert (light.stream, told.stream) == (lamp.stream("desk"), "deployment/d1")
    assert over.state.status.value == status
    assert reason in over.state.reason


def test_whatever_a_step_starts_can_be_cancelled() -> None:
    known = {one.name: one for one in parts.machines(CORES)}

    for kind in parts.step_kinds(CORES).values():
        assert Cancel in machine.members(known[kind.machine].vocabulary.commands), kind.name


async def ended(engine: service.Engine, stream: messages.StreamName) -> visibility.StreamView:
    with engine.watch() as signal:
        async with asyncio.timeout(20):
            while not (view := await engine.read(lambda s: visibility.stream(s, stream))).ended_at:
                await engine.wait(signal, timedelta(seconds=0.2))
    return view


def test_a_step_with_wrong_words_is_refused() -> None:
    step = parts.step_kinds(CORES)["light-lamp"]

    with pytest.raises(errors.Rejected, match="name and watts"):
        step.start(PLAN, "p1", {"name": "desk"})


def test_two_step_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(errors.Conflict, match="light-lamp"):
        parts.step_kinds([parts.core(LAMPS)] * 2)
