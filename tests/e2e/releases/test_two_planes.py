"""Two machines on one store: each runs what was deployed to it, and nothing of the other's."""

from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.rollouts.domain import coordination
from fairlead.areas.rollouts.local.platform import LocalPlatform
from fairlead.engine import visibility
from tests.e2e.releases.plane import Plane, plane

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
STILL: dict[str, Any] = {"strategy": {"steps": [50], "pause": "1s"}}


async def queue_of(running: Plane, name: str) -> str:
    stream = coordination.rollout_stream(name)
    view = await running.engine.read(lambda session: visibility.stream(session, stream))
    return view.queue


async def live(running: Plane, name: str) -> None:
    await running.deploy("v1", **STILL, name=name)
    stream = coordination.rollout_stream(name)
    with running.engine.watch() as signal:
        while True:
            view = await running.engine.read(lambda session: visibility.stream(session, stream))
            if view.state == "Idle":
                return
            await signal.wait()
            signal.clear()


@pytest.mark.deadline(120)
async def test_each_control_plane_takes_only_what_was_deployed_on_its_machine(
    tmp_path: Path, postgres_url: str
) -> None:
    async with (
        plane(tmp_path / "a", database=postgres_url) as one,
        plane(tmp_path / "b", database=postgres_url) as two,
    ):
        await live(one, "shop")
        await live(two, "bakery")
        both = [await queue_of(one, "shop"), await queue_of(two, "bakery")]
        with pytest.raises(errors.Conflict, match="shop runs on another machine"):
            await two.deploy("v2", **STILL)
        dead = await one.engine.read(lambda session: visibility.effects(session, dead=True))

    assert both == [LocalPlatform(tmp_path / each / "local").queue for each in ("a", "b")]
    assert dead == []
    assert [path.stem for path in (tmp_path / "a/local/desired").iterdir()] == ["shop"]
    assert [path.stem for path in (tmp_path / "b/local/desired").iterdir()] == ["bakery"]


@pytest.mark.deadline(120)
async def test_a_rollout_from_before_queues_comes_into_that_of_its_machine(tmp_path: Path) -> None:
    async with plane(tmp_path) as before:
        await live(before, "shop")
        await before.engine.move([coordination.rollout_stream("shop")], "")

    async with plane(tmp_path) as after:
        await after.until(lambda *_: True)
        queue = LocalPlatform(tmp_path / "local").queue
        with after.engine.watch() as signal:
            while await queue_of(after, "shop") != queue:
                await after.engine.wait(signal, visibility.GRACE / 100)
