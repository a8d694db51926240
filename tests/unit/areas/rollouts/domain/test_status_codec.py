"""What a status remembers: small, whole, and readable by later releases."""

import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.domain.rollouts import messages, shapes, states, view
from fairlead.domain.rollouts.spec import Check, Spec
from fairlead.domain.rollouts.strategy import Pace, Strategy
from fairlead.domain.values import Percent
from tests.unit.domain.rollouts.stories import SPEC, live
from tests.unit.domain.rollouts.world import World, refused, version

KEPT = Path(__file__).parent / "kept"
PROMETHEUS = 'sum(rate(istio_requests_total{response_code!~"5.*",destination_workload="shop"}[1m]))'
# One file per shape that a release has written. Whoever changes the shape adds the next one.
SHAPES = range(1, shapes.SHAPE + 1)


def samples(shape: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((KEPT / f"shape-{shape}.json").read_text())
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_what_any_release_wrote_can_be_read(shape: int) -> None:
    for sample in samples(shape):
        state = shapes.load(sample)

        assert sample["shape"] == shape
        assert type(state).__name__ == sample["state"]
        assert not isinstance(state, states.Unknown)
        assert state.book.stable.revision in ("v1", "v2")


def test_the_same_story_reads_the_same_in_every_shape() -> None:
    told = [[shapes.load(sample) for sample in samples(shape)] for shape in SHAPES]

    assert all(story == told[0] for story in told)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rollout_goes_on_from_what_an_older_release_wrote(shape: int) -> None:
    (watching, *_) = [each for each in samples(shape) if each["state"] == "Watching"]
    world = World()
    place = world.place("shop")
    stable, canary = version("v1"), version("v2")
    place.ensure(messages.EnsureVersion("shop", 1, messages.Slot.PRIMARY, stable, 3))
    place.ensure(messages.EnsureVersion("shop", 4, messages.Slot.CANARY, canary, 1))

    world.send(messages.Adopt({"memory": watching}))
    world.send(messages.Abort("ada"))

    book = world.run_until(states.Idle).book
    assert (book.stable, book.route.share) == (stable, 0)


def test_a_status_from_the_future_names_what_to_do() -> None:
    newer = shapes.SHAPE + 1

    error = refused(World(), messages.Adopt({"memory": {"shape": newer}}))

    assert error is not None
    assert error.message.endswith(f"its shape is {newer}, the newest here {shapes.SHAPE}")
    assert "the release that wrote it" in error.hint


def test_what_is_kept_is_what_comes_back_at_every_step_of_a_life() -> None:
    world = live()
    for _ in range(400):
        world.run(longest=1)
        state = world.state()
        back = shapes.load(shapes.dump(state))

        unseen = dataclasses.replace(state.book, sight=None, looks=0, look_at=None)
        assert back == dataclasses.replace(state, book=unseen)
        if isinstance(state, states.Idle):
            break
    assert state.book.outcome is not None


def test_a_run_keeps_rules_of_its_own_only_where_they_differ() -> None:
    world = live()
    world.run_until(states.Watching)
    same = shapes.dump(world.state())

    world.want("v2", dataclasses.replace(SPEC, keep=3))
    other = shapes.dump(world.state())

    assert "spec" not in same["data"]["run"]
    assert other["data"]["run"]["spec"] != other["data"]["book"]["spec"]
    back = shapes.load(other)
    assert isinstance(back, states.Watching)
    assert back.run.spec == SPEC


def test_nothing_in_it_is_null_so_no_api_server_drops_a_part() -> None:
    world = live()
    world.run_until(states.Watching)

    assert b"null" not in msgspec.json.encode(view.status(world.state()))


def test_a_status_stays_small() -> None:
    plain = Spec(Strategy(steps=(Pace(Percent(10), approve=True),)))
    checks = tuple(Check(name, PROMETHEUS, low=99) for name in ("success", "latency", "errors"))
    rich = Spec(Strategy(step_weight=10, pause=dt.timedelta(minutes=1)), checks, keep=10)

    assert _size(plain) < 2_500
    assert _size(rich, revisions=12) < 5_000


def _size(spec: Spec, revisions: int = 1) -> int:
    world = World()
    for number in range(1, revisions + 1):
        world.want(f"registry.example/shop:1.{number}.0", spec)
        if number > 1:
            world.run_until(states.Watching)
            world.send(messages.PromoteFully("ada"))
        world.run_until(states.Idle)
    world.want("registry.example/shop:2.0.0", spec)
    world.run_until(states.Watching)
    return len(msgspec.json.encode(view.status(world.state())))
