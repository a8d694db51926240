"""The document's whole sequence: a git server, processes replaced one by one, clusters that poll.

Nobody ever gets a version that the sequence does not allow, and nobody gets an error.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from fairlead import bootstrap
from fairlead.access import intake, tokens
from fairlead.areas.content import requests
from fairlead.areas.content.area import CONTENT
from fairlead.areas.content.domain import population
from fairlead.areas.content.domain.population import Channel, Population, Share
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.place import Versions
from fairlead.areas.content.release import rules
from fairlead.areas.content.release.host import QUEUE
from fairlead.clients.processes import clean_up
from fairlead.engine import service, visibility
from tests import contents
from tests.contract.local.shop_versions import free_port
from tests.contract.unleash import server as unleash
from tests.e2e.content import polling
from tests.e2e.content.polling import IDS, Answer, Clusters

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
NAME = stream("gathering")
RITA = intake.Caller("rita", tokens.Role.DEPLOYER)
PAUL = intake.Caller("paul", tokens.Role.OPERATOR)
TWO_STEPS = [{"share": share, "bake": "1s", "approve": True} for share in (20, 50)]


@dataclass
class Plane:
    """A control plane in this process; what it starts are processes of their own."""

    engine: service.Engine
    queue: str
    file: dict[str, Any]
    inside: polling.Inside
    lag: float
    clusters: Clusters
    repository: Path
    door: intake.Intake = field(init=False)

    def __post_init__(self) -> None:
        self.door = intake.Intake(self.engine)

    def push(self, version: str) -> None:
        contents.tag(self.repository, version, contents.version_files(version))

    async def propose(self, version: str, **more: Any) -> None:
        asked = rules.Proposed(self.file, version, f"rules of {version}", **more)
        await requests.propose(self.door, RITA, asked, self.queue)

    async def ask(self, caller: intake.Caller, verb: str, why: str = "") -> None:
        told = await self.engine.read(lambda s: requests.listed(s, 1))
        command = view.command(verb, caller.name, why, told[0].revision if told else "")
        await self.door.submit(caller, requests.verb_request("gathering", command))

    async def until(self, holds: Callable[[view.Summary], bool]) -> view.Summary:
        with self.engine.watch() as signal:
            async with asyncio.timeout(240):
                while True:
                    (one,) = await self.engine.read(lambda s: requests.listed(s, 1))
                    if holds(one):
                        return one
                    await signal.wait()
                    signal.clear()

    async def at_rest(self) -> view.Summary:
        return await self.until(lambda one: one.phase == "Idle")

    async def baked(self, share: str) -> None:
        await self.until(lambda one: (one.phase, one.share) == ("AwaitingDecision", share))

    async def gets(self, stable: str, canary: str = "", share: int = 0) -> None:
        """Until each of them gets exactly this; the instances hear of a share a moment later."""
        number = (await self.state())["runs"]
        salt = f"{canary}-{number}"
        inside = {each for each in IDS if self.inside(salt, each, share * 100) is Channel.CANARY}
        wanted = {each: canary if each in inside else stable for each in IDS}
        async with asyncio.timeout(240):
            while await self.clusters.sweep() != wanted:
                pass

    async def state(self) -> dict[str, Any]:
        found = await self.engine.read(lambda s: visibility.stream(s, NAME))
        return dict(found.data)

    async def events(self) -> list[visibility.EventView]:
        return list(await self.engine.read(lambda s: visibility.events(s, NAME, 0, 1000)))


@contextlib.asynccontextmanager
async def plane(
    folder: Path, variables: Mapping[str, str], more: Mapping[str, Any]
) -> AsyncIterator[Plane]:
    repository = contents.repository(folder / "conditions")
    contents.tag(repository, "1.0.1", contents.version_files("1.0.1"))
    state, port = folder / "state", free_port()
    base = bootstrap.installation((CONTENT,))
    chosen = base.settings({"FAIRLEAD_STATE_DIR": str(state), **variables})
    given = bootstrap.with_platforms(chosen, base)
    kept, queue = given.store(chosen.store), given.services.find(QUEUE)
    kept.migrate()
    assert queue is not None
    clusters, made = Clusters(f"http://127.0.0.1:{port}"), given.engine(chosen, kept)
    try:
        with contents.serving_git(repository) as address:
            content = {"name": "gathering", "kind": "gathering", "source": {"git": address}}
            file = {
                "content": content,
                "local": {"port": port, "replicas": 2},
                "pollInterval": "1s",
                "steps": TWO_STEPS,
                "deadline": "3m",
                **more,
            }
            inside, lag = (_flagged, 10.0) if "flag" in more else (_own, 6.0)
            async with given.in_background(made), made.running() as engine:
                yield Plane(engine, queue, file, inside, lag, clusters, repository)
    finally:
        await clean_up(state / "content" / "processes", drain_seconds=2.0)


def _own(salt: str, identity: str, share: int) -> Channel:
    return Population(salt, Share(share)).channel(identity)


def _flagged(_: str, identity: str, share: int) -> Channel:
    found = population.bucket("gathering", identity)
    inside = population.enabled(found, Decimal(share) / 100)
    return Channel.CANARY if inside else Channel.STABLE


@pytest.fixture(
    params=["own", pytest.param("unleash", marks=[unleash.NEEDED])],
)
def shared(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Mapping[str, str], Mapping[str, Any]]]:
    """Who says the share: variables of the control plane, and what the file says of it."""
    if request.param == "own":
        yield {}, {}
        return
    with unleash.running(request.getfixturevalue("postgres_url"), tmp_path) as there:
        unleash.make_flag(there, "gathering")
        variables = {
            "FAIRLEAD_CONTENT_UNLEASH_URL": there.url,
            "FAIRLEAD_CONTENT_UNLEASH_TOKEN": unleash.CLIENT,
            "FAIRLEAD_CONTENT_UNLEASH_ADMIN_TOKEN": unleash.ADMIN,
            "FAIRLEAD_CONTENT_UNLEASH_POLL_SECONDS": "1",
        }
        yield variables, {"flag": {"environment": "development"}}


@pytest.mark.requirement(
    "content 2",
    "content 3",
    "content 4",
    "content 5",
    "content 6",
    "content 8",
    "content 9",
    "content 10",
    "content 12",
)
async def test_the_whole_sequence_shows_nobody_a_version_out_of_turn(
    tmp_path: Path, shared: tuple[Mapping[str, str], Mapping[str, Any]]
) -> None:
    async with plane(tmp_path, *shared) as here:
        await here.propose("1.0.1", emergency=True)
        await here.ask(PAUL, "approve")
        await here.at_rest()
        async with here.clusters.polling():
            await _good(here)
            await _bad(here)
            await _unready(here)
            await _newer_then_emergency(here)
        events = await here.events()

    history = polling.allowed(events)
    found = polling.violations(here.clusters.answers, history, here.lag, here.inside)
    assert list(found)[:20] == []
    assert len({each.identity for each in here.clusters.answers}) == len(IDS)
    _check_recorded(events)


async def _good(here: Plane) -> None:
    here.push("1.0.2")
    await here.gets("1.0.1")
    await here.propose("1.0.2")
    await here.ask(PAUL, "approve")
    await here.baked("20")
    await here.gets("1.0.1", "1.0.2", 20)
    await here.ask(RITA, "advance")
    await here.baked("50")
    await here.gets("1.0.1", "1.0.2", 50)
    await here.ask(PAUL, "promote")
    told = await here.at_rest()
    assert (told.stable, told.share) == ("1.0.2", "0")
    await here.gets("1.0.2")


async def _bad(here: Plane) -> None:
    here.push("1.0.3")
    await here.propose("1.0.3")
    await here.ask(PAUL, "approve")
    await here.baked("20")
    await here.gets("1.0.2", "1.0.3", 20)
    await here.ask(RITA, "abort", "archives are empty")
    told = await here.at_rest()
    assert (told.outcome, told.why, told.share) == ("1.0.3: Reverted", "archives are empty", "0")
    await here.gets("1.0.2")


async def _unready(here: Plane) -> None:
    await here.propose("1.0.9")
    await here.ask(PAUL, "approve")
    told = await here.at_rest()
    assert (told.outcome, told.stable) == ("1.0.9: DeploymentFailed", "1.0.2")
    assert "version not found: 1.0.9" in told.why
    await here.gets("1.0.2")


async def _newer_then_emergency(here: Plane) -> None:
    for version in ("1.0.4", "1.0.5", "1.0.6"):
        here.push(version)
    await here.propose("1.0.4")
    await here.ask(PAUL, "approve")
    await here.baked("20")
    await here.propose("1.0.5")
    await here.ask(PAUL, "approve")
    await here.until(lambda one: (one.phase, one.canary) == ("AwaitingDecision", "1.0.5"))
    await here.gets("1.0.2", "1.0.5", 20)
    await here.propose("1.0.6", emergency=True)
    await here.ask(PAUL, "approve")
    told = await here.at_rest()
    assert (told.stable, told.share) == ("1.0.6", "0")
    await here.gets("1.0.6")


def _check_recorded(events: list[visibility.EventView]) -> None:
    approved = [each.data for each in events if each.type == "Approved"]
    assert [each["version"] for each in approved] == [
        *("1.0.1", "1.0.2", "1.0.3", "1.0.9", "1.0.4", "1.0.5", "1.0.6"),
    ]
    assert {each["by"] for each in approved} == {"paul"}
    reverts = [
        (each.data["by"], each.data["why"]) for each in events if each.type == "RevertStarted"
    ]
    assert reverts[0] == ("rita", "archives are empty")
    assert reverts[1][0] == "fairlead"
    shares = [each.data["share"] for each in events if each.type == "ShareSet"]
    assert shares[-1] == 0


def test_an_answer_out_of_turn_is_found() -> None:
    versions, shares = frozenset({Versions("1.0.1", "1.0.2")}), frozenset({("s", 5000)})
    history = [
        polling.Allowed(0.0, frozenset({Versions("1.0.1")}), frozenset({("", 0)})),
        polling.Allowed(100.0, versions, shares),
    ]
    inside = {each: _own("s", each, 5000) is Channel.CANARY for each in IDS[:50]}
    right = [Answer(each, 150, 150, "1.0.2" if inside[each] else "1.0.1") for each in inside]
    early = [replace(each, began=50.0, ended=50.0) for each in right if inside[each.identity]]
    swapped = [replace(each, version="1.0.1") for each in right if inside[each.identity]]
    failed = [Answer("a", 150, 150, "", "HTTP 503")]

    def found(answers: list[Answer]) -> int:
        return len(list(polling.violations(answers, history, 6.0, _own)))

    assert early
    assert found(right) == 0
    assert found(early) == len(early)
    assert found(swapped) == len(swapped)
    assert found(failed) == 1
