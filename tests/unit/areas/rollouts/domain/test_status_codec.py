"""What a status remembers: small, whole, and readable by later releases."""

import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairlead.areas.rollouts.domain import messages, states, status_codec, view
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.checks.spec import Check
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain.stories import SPEC, live
from tests.unit.areas.rollouts.domain.world import World, refused, version

KEPT = Path(__file__).parent / "kept"
PROMETHEUS = 'sum(rate(istio_requests_total{response_code!~"5.*",destination_workload="shop"}[1m]))'
# One file per shape that a release has written. Whoever changes the shape adds the next one.
SHAPES = range(1, status_codec.SHAPE + 1)


def samples(shape: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((KEPT / f"shape-{shape}.json").read_text())
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_what_any_release_wrote_can_be_read(shape: int) -> None:
    for sample in samples(shape):
        state = status_codec.load(sample)

        assert sample["shape"] == shape
        assert type(state).__name__ == sample["state"]
        assert not isinstance(state, states.Unknown)
        assert state.rollout.stable.revision in ("v1", "v2")


def test_the_same_story_reads_the_same_in_every_shape() -> None:
    told = [[status_codec.load(sample) for sample in samples(shape)] for shape in SHAPES]

    assert all(story == told[0] for story in told)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rollout_goes_on_from_what_an_older_release_wrote(shape: int) -> None:
    (watching, *_) = [each for each in samples(shape) if each["state"] == "Analysing"]
    world = World()
    place = world.place("shop")
    stable, canary = version("v1"), version("v2")
    place.ensure(messages.EnsureVersion("shop", 1, Slot.PRIMARY, stable, 3))
    place.ensure(messages.EnsureVersion("shop", 4, Slot.CANARY, canary, 1))

    world.send(messages.Adopt(RolloutStatus(memory=watching)))
    world.send(messages.Abort("ada"))

    rollout = world.run_until(states.Idle).rollout
    assert (rollout.stable, rollout.route.weight) == (stable, 0)


def test_a_status_from_the_future_names_what_to_do() -> None:
    newer = status_codec.SHAPE + 1

    error = refused(World(), messages.Adopt(RolloutStatus(memory={"shape": newer})))

    assert error is not None
    assert error.message.endswith(
        f"it has shape {newer}, this release reads up to {status_codec.SHAPE}"
    )
    assert "the release that wrote it" in error.hint


def test_what_is_kept_is_what_comes_back_at_every_step_of_a_life() -> None:
    world = live()
    for _ in range(400):
        world.run(longest=1)
        state = world.state()
        back = status_codec.load(status_codec.dump(state))

        unseen = dataclasses.replace(state.rollout, observed=None, observations=0, observe_at=None)
        assert back == dataclasses.replace(state, rollout=unseen)
        if isinstance(state, states.Idle):
            break
    assert state.rollout.outcome is not None


def test_a_run_keeps_rules_of_its_own_only_where_they_differ() -> None:
    world = live()
    world.run_until(states.Analysing)
    same = status_codec.dump(world.state())

    world.want("v2", dataclasses.replace(SPEC, keep=3))
    other = status_codec.dump(world.state())

    assert "spec" not in same["data"]["run"]
    assert other["data"]["run"]["spec"] != other["data"]["rollout"]["spec"]
    back = status_codec.load(other)
    assert isinstance(back, states.Analysing)
    assert back.run.spec == SPEC


def test_nothing_in_it_is_null_so_no_api_server_drops_a_part() -> None:
    world = live()
    world.run_until(states.Analysing)

    assert b"null" not in msgspec.json.encode(view.status(world.state()).plain())


def test_a_status_stays_small() -> None:
    plain = Spec(Strategy(steps=(Pace(Percent(10), approve=True),)))
    checks = tuple(Check(name, PROMETHEUS, low=99) for name in ("success", "latency", "errors"))
    rich = Spec(Strategy(step_weight=10, pause=dt.timedelta(minutes=1)), checks, keep=10)

    assert _size(plain) < 2_600
    assert _size(rich, revisions=12) < 5_000


def _size(spec: Spec, revisions: int = 1) -> int:
    world = World()
    for number in range(1, revisions + 1):
        world.want(f"registry.example/shop:1.{number}.0", spec)
        if number > 1:
            world.run_until(states.Analysing)
            world.send(messages.PromoteFully("ada"))
        world.run_until(states.Idle)
    world.want("registry.example/shop:2.0.0", spec)
    world.run_until(states.Analysing)
    return len(msgspec.json.encode(view.status(world.state()).plain()))
