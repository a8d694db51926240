"""What we publish on an object is no reason to look at it, unless something else came along."""

import datetime as dt
from typing import Any, cast

import pytest

from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.status import PauseStatus, RolloutStatus
from fairlead.areas.rollouts.kubernetes import wiring
from fairlead.areas.rollouts.kubernetes.collectors import RolloutMetrics
from fairlead.areas.rollouts.kubernetes.context import RolloutContexts
from fairlead.areas.rollouts.kubernetes.status_writer import StatusWriter
from fairlead.kubernetes.cache.watch import Watches
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.controller import Controller, Reach
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.controller.registration import ControllerContext
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.kinds import stream_key
from fairlead.kubernetes.objects import Key, Object
from fairlead.kubernetes.writes.effects import Performer
from fairlead.kubernetes.writes.events import Recorder
from fairlead.kubernetes.writes.seals import Seals
from fairlead.kubernetes.writes.write_lock import WriteLocks
from tests.unit.areas.rollouts.kubernetes.snapshot import canary

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


class PublishedRollout:
    """One rollout that was looked at, and its owner's port."""

    def __init__(self, **fields: Any) -> None:
        made = {**canary(), **fields}
        made["metadata"]["resourceVersion"] = "1"
        self.server = Server(made)
        client = cast("Client", self.server)
        canaries, recorder = wiring.canaries(), Recorder(client, "test")
        canaries.seals = Seals(bytes(32))
        reach = Reach("bay", Shard(), QueueOptions(), Clock())
        self.controller = Controller(canaries.kinds[0], Watches(client), client, recorder, reach)
        self.controller.held.objects.put(made)
        write_locks = WriteLocks(Leader())
        self.controller.begin(write_locks)
        self.name = stream_key(made)
        held = {str(self.controller.kind.api): self.controller.held}
        performer = Performer(client, held, recorder, write_locks, Clock().now)
        controller_context = ControllerContext(
            client, [self.controller], performer, write_locks, Clock(), Key("default", "key")
        )
        self.owner = StatusWriter(RolloutContexts(controller_context, canaries), RolloutMetrics())
        queue = self.controller.queue
        assert queue is not None
        taken = queue.backlog.take(0.0)
        assert taken == SHOP
        queue.backlog.done(SHOP, 0.0)

    async def publish(self, round_: int, **status: Any) -> int:
        """Answers how many looks are waited for then."""
        told = RolloutStatus(round=round_, **status)
        await self.owner.publish(messages.PublishStatus(self.name, told))
        return self.controller.waiting

    def forge(self, **status: Any) -> None:
        """Somebody else writes to the status, and we hear of it."""
        held = self.server.held
        meta = {**held["metadata"], "resourceVersion": "9"}
        self.server.held = {**held, "metadata": meta, "status": {**held["status"], **status}}
        self.controller.held.objects.put(self.server.held)


def seal_of(held: Object) -> str:
    status = held["status"]
    content = {key: status.get(key) for key in ("memory", "accepted", "requests")}
    return Seals(bytes(32)).of(held, content)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.areas.rollouts.kubernetes.status_writer.PAUSE_SECONDS", 0.0)


@pytest.fixture
def published() -> PublishedRollout:
    return PublishedRollout()


async def test_a_status_carries_the_seal_of_what_it_remembers() -> None:
    published = PublishedRollout()

    await published.publish(1, memory={"state": "Idle"}, canary_revision="r2")

    held = published.server.held
    assert held["status"]["seal"] == seal_of(held)


async def test_what_we_publish_ourselves_is_held_and_not_looked_at(
    published: PublishedRollout,
) -> None:
    assert await published.publish(1, phase="Progressing") == 0
    assert await published.publish(2, phase="Stable") == 0

    held = published.controller.held.objects.get(SHOP)
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
    published: PublishedRollout, change: dict[str, Any]
) -> None:
    published.server.meanwhile = change

    assert await published.publish(1, phase="Progressing") == 1


async def test_a_pause_that_is_published_is_looked_at_for_the_field_may_have_ended_it(
    published: PublishedRollout,
) -> None:
    paused = PauseStatus("spec.paused", dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC))

    assert await published.publish(1, phase="Paused", paused=paused) == 1


async def test_changes_by_others_are_heard_of_after_our_own(published: PublishedRollout) -> None:
    await published.publish(1, phase="Progressing")

    later = {**published.server.held["metadata"], "resourceVersion": "9", "generation": 2}
    published.controller.held.objects.put({**published.server.held, "metadata": later})

    assert published.controller.waiting == 1


async def test_requests_that_were_answered_stay_in_the_status(published: PublishedRollout) -> None:
    obj = published.controller.held.objects.get(SHOP)
    assert obj is not None
    await published.controller.answer(obj, {"approve": "1"}, ())

    await published.publish(1, phase="Progressing")

    assert published.server.held["status"]["requests"] == {"approve": "1"}


async def test_an_answer_renews_a_seal_that_holds(published: PublishedRollout) -> None:
    await published.publish(1, memory={"state": "Idle"})

    await published.controller.answer(published.server.held, {"approve": "1"}, ())

    held = published.server.held
    assert held["status"]["requests"] == {"approve": "1"}
    assert held["status"]["seal"] == seal_of(held)


async def test_an_answer_seals_nothing_that_others_wrote(published: PublishedRollout) -> None:
    await published.publish(1, memory={"state": "Idle"})
    published.forge(memory={"state": "Promoted"})

    await published.controller.answer(published.server.held, {"approve": "1"}, ())

    assert published.server.held["status"]["seal"] != seal_of(published.server.held)


async def test_requests_that_others_took_away_come_back(published: PublishedRollout) -> None:
    await published.publish(1, phase="Progressing")
    await published.controller.answer(published.server.held, {"approve": "1"}, ())
    published.forge(requests={})

    await published.publish(2, phase="Stable")

    assert published.server.held["status"]["requests"] == {"approve": "1"}
    assert published.server.held["status"]["seal"] == seal_of(published.server.held)


async def test_a_late_round_is_not_shown(published: PublishedRollout) -> None:
    await published.publish(2, phase="Stable")

    await published.publish(1, phase="Progressing")

    assert published.server.held["status"]["phase"] == "Stable"


async def test_a_store_that_is_behind_the_status_still_shows_where_it_is() -> None:
    """As after a restore from a backup, or where nobody could read the memory."""
    published = PublishedRollout(status={"phase": "Stable", "round": 40})

    await published.publish(3, phase="Progressing")

    assert published.server.held["status"]["phase"] == "Progressing"
