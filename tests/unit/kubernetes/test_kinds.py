"""The reconciler with plain dicts: each level once, however often the caches report it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fairlead.engine import messages
from fairlead.errors import Rejected, Unavailable
from fairlead.kubernetes.kinds import (
    Children,
    Kind,
    Level,
    ObservedObject,
    Place,
    Reconciler,
    Request,
    place_of,
    round_of,
)
from fairlead.kubernetes.objects import Key, Object, Resource
from tests.operator.sample_kind import KIND, Adopt, Delete, Observe, bundle

HERE = Key("bay", "north")


class Cluster:
    """Caches as dicts, and what the user was told."""

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.owned: dict[str, list[Object]] = {}
        self.told: list[str] = []
        self.down = False

    def object(self, name: Key) -> Object | None:
        return self.objects.get(name)

    def snapshot(self, obj: Object) -> "FakeSnapshot":
        return FakeSnapshot(self.owned.get(obj["metadata"]["uid"], []))

    async def refuse(self, obj: Object, error: Rejected) -> None:
        if self.down:
            raise Unavailable("no answer", hint="later")
        self.told.append(f"{obj['metadata']['name']}: {error.message}")

    async def accept(self, obj: Object) -> None:
        self.told.append(f"{obj['metadata']['name']}: accepted")

    def warn(self, obj: Object, reason: str, error: Rejected) -> None:
        self.told.append(f"{obj['metadata']['name']}: {reason}: {error.message}")

    async def answer(self, obj: Object, done: Mapping[str, str], refused: Sequence[str]) -> None:
        self.told.extend([f"done: {dict(done)}", *refused])


@dataclass
class FakeSnapshot:
    """What stands around an object: its children."""

    children: Children
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    @property
    def versions(self) -> list[int]:
        return [int(child["metadata"]["resourceVersion"]) for child in self.children]

    def found(self, api: Resource, term: str) -> Children:
        raise AssertionError((api, term))

    def is_served(self, api: Resource) -> bool:
        raise AssertionError(api)


class Engine:
    """Takes down what it is told; fails where it is told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, object, str]] = []
        self.asked: list[object] = []
        self.queues: set[str] = set()
        self.error: Exception | None = None

    async def submit(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the engine's own word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        self.asked.append(command)
        return await self.observe(stream, command, id, queue=queue)

    async def observe(
        self,
        stream: messages.StreamName,
        command: object,
        id: messages.CommandId,  # noqa: A002 - the engine's own word
        *,
        queue: str = "",
    ) -> messages.Receipt:
        self.queues.add(queue)
        if self.error is not None:
            raise self.error
        self.taken.append((stream, command, id))
        return messages.Receipt(stream, 1, 1)

    @property
    def commands(self) -> list[object]:
        return [command for _, command, _ in self.taken]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def engine() -> Engine:
    return Engine()


@pytest.fixture
def reconciler(cluster: Cluster, engine: Engine) -> Reconciler:
    return Reconciler(KIND, cluster, engine)


def place(stream: str) -> Place:
    found = place_of(stream)
    assert found is not None
    return found


def living(uid: str = "u1", version: int = 1, **spec: Any) -> Object:
    obj = bundle(HERE.namespace, HERE.name, **{"gadgets": 3, **spec})
    obj["metadata"] |= {"uid": uid, "resourceVersion": str(version), "generation": 1}
    return obj


def gadget(number: int, version: int, cargo: str = "tea") -> Object:
    meta = {"name": f"north-{number}", "resourceVersion": str(version)}
    return {"metadata": meta, "data": {"cargo": cargo}}


async def test_an_unchanged_level_is_told_once(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    await reconciler.reconcile(HERE)
    cluster.objects[HERE] = living(version=2)
    await reconciler.reconcile(HERE)

    assert [type(one) for one in engine.commands] == [Observe]


async def test_there_and_back_again_are_three_levels(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    for version, cargo in enumerate(("tea", "silk", "tea"), start=1):
        cluster.objects[HERE] = living(version=version, cargo=cargo)
        await reconciler.reconcile(HERE)

    ids = [id_ for _, _, id_ in engine.taken]
    assert len(set(ids)) == len(ids) == 3
    assert engine.commands[0] == engine.commands[2]


async def test_a_restart_tells_the_same_level_under_the_same_id(
    cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    cluster.owned["u1"] = [gadget(0, 5)]
    await Reconciler(KIND, cluster, engine).reconcile(HERE)
    await Reconciler(KIND, cluster, engine).reconcile(HERE)

    assert engine.taken[0] == engine.taken[1]


async def test_a_changed_child_is_another_level(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    cluster.owned["u1"] = [gadget(0, 5)]
    await reconciler.reconcile(HERE)
    cluster.owned["u1"] = [gadget(0, 6, "rats")]
    await reconciler.reconcile(HERE)

    assert [one.cargoes for one in engine.commands if isinstance(one, Observe)] == [
        {"north-0": "tea"},
        {"north-0": "rats"},
    ]


async def test_a_successor_is_another_stream_and_its_predecessor_ends(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living("u1")
    await reconciler.reconcile(HERE)
    cluster.objects[HERE] = living("u2", version=9)
    await reconciler.reconcile(HERE)

    told = [(place(s).uid, type(c)) for s, c, _ in engine.taken]
    assert told == [("u1", Observe), ("u1", Delete), ("u2", Observe)]


async def test_the_end_is_told_once_and_nothing_after_it(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    await reconciler.reconcile(HERE)
    cluster.objects[HERE]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await reconciler.reconcile(HERE)
    await reconciler.reconcile(HERE)
    del cluster.objects[HERE]
    await reconciler.reconcile(HERE)
    await reconciler.reconcile(HERE)

    assert [type(one) for one in engine.commands] == [Observe, Delete, Delete]
    assert engine.commands[-1] == Delete()


async def test_an_end_that_was_not_taken_is_told_again(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    await reconciler.reconcile(HERE)
    del cluster.objects[HERE]
    engine.error = Unavailable("no store", hint="later")
    with pytest.raises(Unavailable):
        await reconciler.reconcile(HERE)
    engine.error = None
    await reconciler.reconcile(HERE)

    assert engine.commands[-1] == Delete()


async def test_a_status_is_adopted_before_the_first_look_and_only_then(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = {**living(), "status": {"round": 7, "voyages": 3, "generation": 1}}
    await reconciler.reconcile(HERE)
    cluster.objects[HERE] = {**living(version=2, cargo="silk"), "status": {"round": 9}}
    await reconciler.reconcile(HERE)

    assert [type(one) for one in engine.commands] == [Adopt, Observe, Observe]
    assert engine.commands[0] == Adopt(7, 3, 1)


@pytest.mark.parametrize("status", [{}, {"round": 0}, {"round": 3, "voyages": "many"}])
async def test_a_status_that_says_nothing_is_no_obstacle(
    reconciler: Reconciler, cluster: Cluster, engine: Engine, status: Object
) -> None:
    cluster.objects[HERE] = {**living(), "status": status}
    await reconciler.reconcile(HERE)

    assert [type(one) for one in engine.commands] == [Observe]


async def test_a_status_that_is_not_believed_is_told_and_the_levels_go_on(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = {**living(), "status": {"round": 3, "voyages": "many"}}
    await reconciler.reconcile(HERE)
    await reconciler.reconcile(HERE)

    (told,) = [one for one in cluster.told if "StatusNotAdopted" in one]
    assert told.startswith("north: StatusNotAdopted: unreadable status: ")
    assert [type(one) for one in engine.commands] == [Observe]


async def test_a_refused_object_is_told_once_and_heals(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    for version in (1, 2):
        cluster.objects[HERE] = living(version=version, cargo="contraband")
        await reconciler.reconcile(HERE)
    cluster.objects[HERE] = living(version=3)
    await reconciler.reconcile(HERE)

    assert cluster.told == ["north: not carried: contraband", "north: accepted"]
    assert [type(one) for one in engine.commands] == [Observe]


async def test_a_machine_that_refuses_is_told_like_the_door(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    engine.error = Rejected("too large", hint="less")
    await reconciler.reconcile(HERE)

    assert cluster.told == ["north: too large"]


async def test_a_refusal_that_could_not_be_told_is_told_later(
    reconciler: Reconciler, cluster: Cluster
) -> None:
    cluster.objects[HERE] = living(cargo="contraband")
    cluster.down = True
    with pytest.raises(Unavailable):
        await reconciler.reconcile(HERE)
    cluster.down = False
    await reconciler.reconcile(HERE)

    assert cluster.told == ["north: not carried: contraband"]


async def test_a_store_that_is_away_makes_the_look_fail_and_the_next_one_tell(
    reconciler: Reconciler, cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    engine.error = Unavailable("no store", hint="later")
    with pytest.raises(Unavailable):
        await reconciler.reconcile(HERE)
    engine.error = None
    await reconciler.reconcile(HERE)

    assert [type(one) for one in engine.commands] == [Observe]


def test_the_longest_names_fit_into_a_stream() -> None:
    obj = living("0" * 36)
    obj["metadata"] |= {"namespace": "n" * 63, "name": "m" * 253}

    found = place(KIND.stream(obj))

    assert found.namespace == "n" * 63
    assert found.uid == "0" * 36
    assert found.is_cut


def test_a_stream_tells_its_place() -> None:
    whole = living()
    everywhere = living()
    del everywhere["metadata"]["namespace"]

    assert place(KIND.stream(whole)) == ("bay", "north", "u1")
    assert place(KIND.stream(everywhere)) == ("", "north", "u1")
    assert not place(KIND.stream(whole)).is_cut


@pytest.mark.parametrize(("status", "found"), [(None, 0), ({}, 0), ({"round": "x"}, 0)])
def test_a_round_that_is_no_number_is_none(status: Object | None, found: int) -> None:
    assert round_of(status) == found
    assert round_of({"round": 4}) == 4


def test_a_kind_is_written_as_kubernetes_does() -> None:
    assert str(KIND.api) == "bundles.tests.fairlead.dev"
    assert str(Resource("", "v1", "configmaps", "ConfigMap")) == "configmaps"


def told_by(*looks: ObservedObject) -> Kind:
    """A kind that tells these looks, one after the other."""
    given = iter(looks)
    return replace(KIND, observe=lambda _obj, _snapshot: next(given))


async def test_each_level_is_told_when_it_alone_changed(cluster: Cluster, engine: Engine) -> None:
    cluster.objects[HERE] = living()
    looks = (
        ObservedObject({"request": Level("tea"), "sight": Level("calm at 1", "calm")}),
        ObservedObject({"request": Level("tea"), "sight": Level("calm at 2", "calm")}),
        ObservedObject({"request": Level("silk"), "sight": Level("calm at 3", "calm")}),
        ObservedObject(
            {"request": Level("silk"), "sight": Level("storm at 4", "storm")}, again=7.0
        ),
    )
    reconciler = Reconciler(told_by(*looks), cluster, engine)

    waits = [await reconciler.reconcile(HERE) for _ in looks]

    assert engine.commands == ["tea", "calm at 1", "silk", "storm at 4"]
    assert waits == [None, None, None, 7.0]


async def test_a_request_is_submitted_once_and_noted(cluster: Cluster, engine: Engine) -> None:
    cluster.objects[HERE] = living()
    first = ObservedObject({"sight": Level("calm")}, {"approve": Request("1", "Approve")})
    second = ObservedObject({}, {"approve": Request("2", "Approve again")})
    reconciler = Reconciler(told_by(first, first, second), cluster, engine)

    for _ in range(3):
        await reconciler.reconcile(HERE)

    assert engine.commands == ["calm", "Approve", "Approve again"]
    # Only what a person asks for is remembered though it changes nothing.
    assert engine.asked == ["Approve", "Approve again"]
    assert len({id_ for _, _, id_ in engine.taken}) == 3
    assert [told for told in cluster.told if told.startswith("done")] == [
        "done: {'approve': '1'}",
        "done: {'approve': '2'}",
    ]


async def test_a_refused_request_is_told_and_is_done_too(cluster: Cluster, engine: Engine) -> None:
    cluster.objects[HERE] = living()
    engine.error = Rejected("nothing waits", hint="look first")
    reconcile = ObservedObject({}, {"approve": Request("1", "Approve")})
    reconciler = Reconciler(told_by(reconcile, reconcile), cluster, engine)

    await reconciler.reconcile(HERE)
    await reconciler.reconcile(HERE)

    assert cluster.told[-2:] == [
        "done: {'approve': '1'}",
        "approve refused: nothing waits; look first",
    ]


async def test_an_object_may_be_refused_while_an_earlier_one_of_it_is_gone_by(
    cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()
    request = {"abort": Request("1", "Abort")}
    held = ObservedObject(
        {"sight": Level("calm")}, request, 3.0, Rejected("no such sea", hint="look")
    )
    reconciler = Reconciler(
        told_by(held, held, ObservedObject({"sight": Level("calm")})), cluster, engine
    )

    waits = [await reconciler.reconcile(HERE) for _ in range(3)]

    assert engine.commands == ["calm", "Abort"]
    assert waits == [3.0, 3.0, None]
    assert cluster.told == ["north: no such sea", "done: {'abort': '1'}", "north: accepted"]


@pytest.mark.parametrize("stream", ["rollout/shop", "rollout/a/b", "rollout/a/b/c/d"])
def test_a_stream_of_another_shape_stands_for_no_object(stream: str) -> None:
    assert place_of(stream) is None


async def test_streams_are_born_in_the_queue_of_the_cluster(
    cluster: Cluster, engine: Engine
) -> None:
    cluster.objects[HERE] = living()

    await Reconciler(KIND, cluster, engine, "kubernetes@prod").reconcile(HERE)

    assert engine.queues == {"kubernetes@prod"}
