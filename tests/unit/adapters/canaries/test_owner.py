"""What we publish on an object is no reason to look at it, unless something else came along."""

from typing import Any, cast

import pytest

from fairlead.adapters.canaries import wiring
from fairlead.adapters.canaries.desk import Desk
from fairlead.adapters.canaries.figures import Figures
from fairlead.adapters.canaries.owner import Owner
from fairlead.adapters.kubernetes.client import Client
from fairlead.adapters.kubernetes.clock import Clock
from fairlead.adapters.kubernetes.crew import Gear
from fairlead.adapters.kubernetes.events import Recorder
from fairlead.adapters.kubernetes.objects import Key, Object
from fairlead.adapters.kubernetes.queue import Pace
from fairlead.adapters.kubernetes.shards import Shard
from fairlead.adapters.kubernetes.station import Reach, Station
from fairlead.adapters.kubernetes.turns import Turns
from fairlead.adapters.kubernetes.watch import Watches
from fairlead.domain.rollouts import messages
from fairlead.intents.kubernetes import stream_key
from tests.unit.adapters.canaries.around import canary

SHOP = Key("bay", "shop")


class Leader:
    """A term without end."""

    def check(self) -> None:
        """Nobody else is there."""


class Server:
    """Takes statuses, and may have heard from somebody else meanwhile."""

    def __init__(self, held: Object) -> None:
        self.held = held
        self.meanwhile: dict[str, Any] = {}

    async def patch(self, *given: Any, **_: Any) -> Object:
        status = dict(self.held.get("status") or {})
        for change in given[2][1:]:
            path = change["path"].removeprefix("/status").removeprefix("/")
            status = change["value"] if not path else {**status, path: change["value"]}
        meta = {**self.held["metadata"], **self.meanwhile}
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.held = {**self.held, "metadata": meta, "status": status}
        return self.held


class Scene:
    """One rollout that was looked at, and its owner's port."""

    def __init__(self) -> None:
        made = canary()
        made["metadata"]["resourceVersion"] = "1"
        self.server = Server(made)
        client = cast("Client", self.server)
        canaries, recorder = wiring.canaries(), Recorder(client, "test")
        reach = Reach("bay", Shard(), Pace(), Clock())
        self.station = Station(canaries.kinds[0], Watches(client), client, recorder, reach)
        self.station.held.objects.put(made)
        turns = Turns(Leader())
        self.station.begin(turns)
        self.name = stream_key(made)
        gear = Gear(client, [self.station], recorder, turns, Clock())
        self.owner = Owner(Desk(gear, canaries), Figures())
        queue = self.station.queue
        assert queue is not None
        taken = queue.backlog.take(0.0)
        assert taken == SHOP
        queue.backlog.done(SHOP, 0.0)

    async def publish(self, serial: int, **status: Any) -> int:
        """Answers how many looks are waited for then."""
        await self.owner.publish(messages.PublishStatus(self.name, serial, status))
        return self.station.waiting


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr("fairlead.adapters.canaries.owner.PAUSE_SECONDS", 0.0)
    return Scene()


async def test_what_we_publish_ourselves_is_held_and_not_looked_at(scene: Scene) -> None:
    assert await scene.publish(1, phase="Progressing") == 0
    assert await scene.publish(2, phase="Stable") == 0

    held = scene.station.held.objects.get(SHOP)
    assert held is not None
    assert held["status"]["phase"] == "Stable"


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 2},
        {"annotations": {"fairlead.dev/abort": "1"}},
        {"deletionTimestamp": "2026-01-01T12:00:00Z"},
    ],
)
async def test_what_came_along_with_the_answer_is_looked_at(
    scene: Scene, change: dict[str, Any]
) -> None:
    scene.server.meanwhile = change

    assert await scene.publish(1, phase="Progressing") == 1


async def test_a_pause_that_is_published_is_looked_at_for_the_field_may_have_ended_it(
    scene: Scene,
) -> None:
    paused = {"data": {"book": {"paused": {"by": "spec.paused"}}}}

    assert await scene.publish(1, phase="Paused", memory=paused) == 1


async def test_changes_by_others_are_heard_of_after_our_own(scene: Scene) -> None:
    await scene.publish(1, phase="Progressing")

    later = {**scene.server.held["metadata"], "resourceVersion": "9", "generation": 2}
    scene.station.held.objects.put({**scene.server.held, "metadata": later})

    assert scene.station.waiting == 1
