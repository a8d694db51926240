"""An API that gives the ids itself: made by POST, and by no cut or failing call a second time."""

import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlead.areas.resources import handlers
from fairlead.areas.resources.domain.model import Model
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import Apply, Declared, Refresh, Remove
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.areas.resources.host import Begun
from fairlead.clients.arm.identity import FileToken
from fairlead.clients.arm.rest import Rest
from fairlead.engine import clock, service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import protocol, sqlite
from fairlead.engine.testing import Play, crash_at_every_commit
from tests.simulated_api import SimulatedApi, description
from tests.unit.areas.resources import swagger
from tests.unit.areas.resources.domain.scale_set import SEAL
from tests.unit.areas.resources.driven import Driven, Once

ID = "/robots/{welder}"
SPEC = {"name": "welder", "arms": 2}


def declared(id_: str = ID, **more: Any) -> Declared:
    return Declared("robots", "1", id_, {**SPEC, **more})


def model(**more: bool) -> Model:
    (found,) = swagger.read(description(**more))
    return Model.of(found)


def ports(api: SimulatedApi, folder: Path, of: Model) -> handlers.ResourcePorts:
    (folder / "token").write_text("a-token\n")
    rest = Rest(api.url, FileToken(folder / "token"), "A_URL", token_header="X-Api-Key")  # noqa: S106 - a name
    return handlers.ResourcePorts(rest, lambda _, __: of, SEAL, str, Once())


@contextlib.asynccontextmanager
async def driven(api: SimulatedApi, folder: Path, of: Model) -> AsyncIterator[Driven]:
    async with api.serving():
        world = ports(api, folder, of)
        assert isinstance(world.api, Rest)
        async with world.api.open():
            yield Driven(api, handlers.handlers(world), id=ID)  # type: ignore[arg-type]  # not asked


def wrote(api: SimulatedApi) -> list[str]:
    return [f"{method} {path}" for method, path, _ in api.writes]


@pytest.mark.requirement("resources R1", "resources R11", "resources R32")
@pytest.mark.parametrize("locations", [True, False])
@pytest.mark.parametrize("labels", [True, False])
async def test_it_is_made_changed_and_deleted_under_the_id_that_the_api_gives(
    labels: bool,  # noqa: FBT001 - of this test
    locations: bool,  # noqa: FBT001 - of this test
    tmp_path: Path,
) -> None:
    api = SimulatedApi(locations=locations)
    async with driven(api, tmp_path, model(labels=labels)) as one:
        await one.tell(Apply(declared()))
        assert (one.phase, one.story.state.last.given) == (Phase.READY, "/robots/101")

        await one.tell(Apply(declared(arms=4)))
        assert (one.phase, api.robots[101]["arms"]) == (Phase.READY, 4)
        await one.tell(Refresh())

        assert (await one.tell(Remove())).phase is Phase.GONE

    at = "/v1/robots"
    assert wrote(api) == [f"POST {at}", f"PATCH {at}/101", f"DELETE {at}/101"]
    assert api.robots == {}


@pytest.mark.requirement("resources R24", "resources R29")
@pytest.mark.parametrize("late", [0, 2])
@pytest.mark.parametrize("page", [0, 1])
async def test_a_creation_whose_answer_was_lost_is_found_by_our_mark(
    late: int, page: int, tmp_path: Path
) -> None:
    api = SimulatedApi(cut_posts=1, late_lists=late, page=page)
    api.robots = {1: {"name": "theirs"}, 2: {"labels": {"fairlead-id": "another"}}}
    async with driven(api, tmp_path, model()) as one:
        await one.tell(Apply(declared()))

    assert (one.phase, api.made, one.story.state.last.given) == (Phase.READY, 1, "/robots/101")


async def test_a_creation_whose_answer_was_lost_is_said_again_with_its_key(tmp_path: Path) -> None:
    api = SimulatedApi(cut_posts=2, keys=True)
    async with driven(api, tmp_path, model(keys=True, labels=False)) as one:
        await one.tell(Apply(declared()))

    assert (one.phase, api.made) == (Phase.READY, 1)
    assert [each for each in api.asked if each[0] == "POST"] == [("POST", "/v1/robots")] * 3


async def test_a_spec_that_changed_meanwhile_is_written_over_what_the_key_brought(
    tmp_path: Path,
) -> None:
    api = SimulatedApi(cut_posts=1, keys=True)
    async with driven(api, tmp_path, model(keys=True, labels=False)) as one:
        one.story.tell(Apply(declared()))
        one.pending += one.story.last.effects
        while one.pending:
            await one.perform()
        await one.tell(Apply(declared(arms=4)))

    assert (one.phase, api.made, api.robots[101]["arms"]) == (Phase.READY, 1, 4)


@pytest.mark.parametrize("unclear", [{"labels": False}, {"listed": False}])
async def test_what_cannot_be_known_asks_a_person_and_makes_no_second_one(
    unclear: dict[str, bool], tmp_path: Path
) -> None:
    api = SimulatedApi(cut_posts=1)
    async with driven(api, tmp_path, model(**unclear)) as one:
        await one.tell(Apply(declared()))
        for _ in range(3):
            await one.woken()
        await one.tell(Apply(declared(arms=3)))

        assert (one.phase, api.made) == (Phase.FAILED, 1)
        assert one.story.state.failure is not None
        assert "it may have been made already" in one.story.state.failure.message

        assert (await one.tell(Remove())).phase is Phase.GONE
        await one.tell(Apply(declared()))

    assert (one.phase, api.made) == (Phase.READY, 2)


async def test_a_list_whose_end_is_not_known_says_nothing(tmp_path: Path) -> None:
    api = SimulatedApi(page=1, opaque_pages=True)
    api.robots = {1: {}, 2: {}}
    async with driven(api, tmp_path, model()) as one:
        await one.tell(Apply(declared()))

    assert (one.phase, api.made) == (Phase.FAILED, 0)


async def test_one_that_others_deleted_is_made_anew(tmp_path: Path) -> None:
    api = SimulatedApi()
    async with driven(api, tmp_path, model()) as one:
        await one.tell(Apply(declared()))
        api.robots.clear()
        await one.woken()

    assert (one.phase, one.story.state.last.given, api.made) == (Phase.READY, "/robots/102", 2)


async def test_a_change_right_after_a_creation_that_is_not_shown_yet_makes_no_second_one(
    tmp_path: Path,
) -> None:
    api = SimulatedApi()
    async with driven(api, tmp_path, model(labels=False)) as one:
        one.story.tell(Apply(declared()))
        one.pending += one.story.last.effects
        while one.phase is not Phase.VERIFYING:
            await one.perform()
        hidden = api.robots.pop(101)
        await one.perform()
        one.story.tell(Apply(declared(arms=3)))
        one.pending += one.story.last.effects
        await one.perform()
        api.robots[101] = hidden
        await one.rest()

    assert (one.phase, api.made, api.robots[101]["arms"]) == (Phase.READY, 1, 3)


async def test_one_that_has_an_id_already_is_kept_and_never_made(tmp_path: Path) -> None:
    api = SimulatedApi(robots={7: {"name": "welder", "arms": 1}})
    async with driven(api, tmp_path, model()) as one:
        one.id = "/robots/7"
        await one.tell(Apply(declared("/robots/7")))
        assert (one.phase, wrote(api)) == (Phase.READY, ["PATCH /v1/robots/7"])

        api.robots.clear()
        await one.woken()

    assert (one.phase, api.made) == (Phase.FAILED, 0)
    assert one.story.state.failure is not None
    assert "the API gives the id" in one.story.state.failure.message


@pytest.mark.slow
@pytest.mark.requirement("resources R24", "resources R29")
@pytest.mark.parametrize("keys", [False, True])
async def test_no_cut_at_any_commit_makes_two(
    keys: bool,  # noqa: FBT001 - of this test
    tmp_path: Path,
) -> None:
    numbers, name = itertools.count(), stream(ID)
    api, of = SimulatedApi(keys=keys, failing=0.2), model(keys=keys, labels=not keys)

    def fresh() -> protocol.Store:
        for each in (api.robots, api.known, api.writes):
            each.clear()
        api.made = 0
        return sqlite.SqliteStore(tmp_path / f"{next(numbers)}.db", [RESOURCE.name])

    def build(store: protocol.Store, wall: clock.Clock) -> service.Engine:
        engine = service.Engine(service.Parts(store, (RESOURCE,), performed, wall=wall))
        begun.engine = engine
        return engine

    async def act(engine: service.Engine) -> None:
        await engine.submit(name, Apply(declared()), command_id("apply"))
        await engine.submit(name, Apply(declared(arms=4)), command_id("change"))

    async def settled(engine: service.Engine) -> bool:
        view = await engine.read(lambda s: visibility.stream(s, name))
        return bool(view.data["phase"] == "Ready" and view.data["converged"] == 2)

    async def check(_: service.Engine) -> None:
        assert (api.made, len(api.robots)) == (1, 1)
        (robot,) = api.robots.values()
        assert robot["arms"] == 4

    async with api.serving():
        world, begun = ports(api, tmp_path, of), Begun()
        performed = handlers.handlers(replace(world, begin=begun))
        assert isinstance(world.api, Rest)
        async with world.api.open():
            cuts = await crash_at_every_commit(
                Play(fresh, build, act, settled, patience=60.0), check
            )

    # So many commits there are where no call fails; each that does adds some.
    assert cuts >= 9


@pytest.mark.parametrize("late", [0, 3])
async def test_one_whose_creation_is_in_doubt_is_found_and_deleted(
    late: int, tmp_path: Path
) -> None:
    api = SimulatedApi(cut_posts=1, late_lists=late)
    async with driven(api, tmp_path, model()) as one:
        one.story.tell(Apply(declared()))
        one.pending += one.story.last.effects
        while one.pending:
            await one.perform()
        assert (one.phase, api.made) == (Phase.WAITING, 1)

        assert (await one.tell(Remove())).phase is Phase.GONE

    assert api.robots == {}
