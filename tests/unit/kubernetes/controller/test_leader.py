"""One leader at a time, whatever happens to it; and which namespaces are whose."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from fairlead.errors import Conflict, Rejected
from fairlead.kubernetes.client import credentials
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.limits import Limits
from fairlead.kubernetes.client.transport import ClientOptions
from fairlead.kubernetes.controller.leader import LEASES, Candidacy, Election, Term
from fairlead.kubernetes.controller.shards import Shard, shard_of
from fairlead.kubernetes.objects import Key
from tests.fakes.kubernetes.hand_clock import HandClock, ticking
from tests.fakes.kubernetes.server import Server

LEASE = Key("default", "fairlead")


class Candidate:
    """A process that would lead; it writes down when it did."""

    def __init__(self, identity: str, client: Client, clock: HandClock) -> None:
        self.identity = identity
        self.client = client
        self.clock = clock
        self.elected = asyncio.Event()
        self.deposed = asyncio.Event()
        self.terms: list[Term] = []
        self.reigns: list[tuple[float, float]] = []
        self.election = Election(client, Candidacy(LEASE, identity), clock.clock(), lambda: 0.5)

    async def lead(self, term: Term) -> None:
        start = self.clock.seconds
        self.terms.append(term)
        self.elected.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.elected.clear()
            self.deposed.set()
            self.reigns.append((start, self.clock.seconds))


class World:
    def __init__(self, server: Server, stack: contextlib.AsyncExitStack) -> None:
        self.server = server
        self.clock = HandClock()
        self._stack = stack
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def candidate(self, identity: str) -> Candidate:
        options = ClientOptions(Limits(rate=10_000, burst=10_000, attempts=1, timeout=1.0))
        connection = Connection(self.server.url, credentials.Fixed())
        client = await self._stack.enter_async_context(Client(connection, options=options))
        candidate = Candidate(identity, client, self.clock)
        self._tasks[identity] = asyncio.create_task(candidate.election.run(candidate.lead))
        return candidate

    def running(self) -> int:
        return sum(not task.done() for task in self._tasks.values())

    async def stop(self, candidate: Candidate) -> None:
        task = self._tasks.pop(candidate.identity)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def stop_all(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with contextlib.AsyncExitStack() as stack, Server().running() as server:
        made = World(server, stack)
        async with ticking(made.clock, made.running):
            yield made
            await made.stop_all()


async def elected(candidate: Candidate) -> None:
    async with asyncio.timeout(60):
        await candidate.elected.wait()


async def deposed(candidate: Candidate) -> None:
    async with asyncio.timeout(60):
        await candidate.deposed.wait()


async def holder(candidate: Candidate) -> str:
    lease = await candidate.client.get(LEASES, LEASE)
    return str(lease["spec"]["holderIdentity"])


async def test_the_first_leads_and_the_second_waits(world: World) -> None:
    first = await world.candidate("first")
    await elected(first)
    second = await world.candidate("second")

    await world.clock.sleep(60)

    assert not second.terms
    assert first.terms[0].is_valid
    assert await holder(first) == "first"


async def test_a_leader_that_stops_hands_over_at_once(world: World) -> None:
    first = await world.candidate("first")
    await elected(first)
    second = await world.candidate("second")

    await world.stop(first)
    stopped = world.clock.seconds
    await elected(second)

    assert world.clock.seconds - stopped < 5
    assert second.terms[0].token > first.terms[0].token
    assert not first.terms[0].is_valid


async def test_a_cut_off_leader_stops_before_the_next_begins(world: World) -> None:
    first = await world.candidate("first")
    await elected(first)
    second = await world.candidate("second")

    await first.client.__aexit__(None, None, None)
    cut = world.clock.seconds
    await elected(second)

    assert first.reigns[0][1] - cut <= 12.5
    assert world.clock.seconds - cut <= 22
    assert first.reigns[0][1] < world.clock.seconds
    with pytest.raises(Conflict, match="no longer the leader"):
        first.terms[0].check()
    second.terms[0].check()


async def test_a_stolen_lease_ends_the_reign(world: World) -> None:
    first = await world.candidate("first")
    await elected(first)

    lease = await first.client.get(LEASES, LEASE)
    lease["spec"] |= {"holderIdentity": "thief", "leaseTransitions": 7}
    await first.client.replace(LEASES, lease)
    await deposed(first)
    await elected(first)

    # The thief never renews, so the lease comes back, in a later term.
    assert first.terms[-1].token == 8


async def test_a_deleted_lease_starts_a_later_term(world: World) -> None:
    first = await world.candidate("first")
    await elected(first)
    token = first.terms[0].token

    await first.client.delete(LEASES, LEASE)
    await deposed(first)
    await elected(first)

    assert first.terms[-1].token > token


async def test_the_clocks_of_others_are_not_believed(world: World) -> None:
    spec = {
        "holderIdentity": "slow-clock",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2001-01-01T00:00:00.000000Z",
        "renewTime": "2001-01-01T00:00:00.000000Z",
    }
    meta = {"namespace": "default", "name": "fairlead"}
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta}
    connection = Connection(world.server.url, credentials.Fixed())
    async with Client(connection) as other:
        await other.create(LEASES, {**body, "spec": spec})

    start = world.clock.seconds
    first = await world.candidate("first")
    await elected(first)

    assert world.clock.seconds - start >= 15
    assert first.terms[0].token == 4


async def test_work_that_fails_is_not_hidden_and_frees_the_lease(world: World) -> None:
    candidate = await world.candidate("idle")
    await elected(candidate)
    await world.stop(candidate)

    async def fail(term: Term) -> None:
        raise ZeroDivisionError

    election = Election(candidate.client, Candidacy(LEASE, "failing"), world.clock.clock())
    with pytest.raises(ZeroDivisionError):
        await election.run(fail)

    assert await holder(candidate) == ""


async def test_work_that_ends_ends_the_candidacy(world: World) -> None:
    candidate = await world.candidate("idle")
    await elected(candidate)
    await world.stop(candidate)
    terms: list[Term] = []

    async def note(term: Term) -> None:
        terms.append(term)

    await Election(candidate.client, Candidacy(LEASE, "brief"), world.clock.clock()).run(note)

    assert len(terms) == 1


@pytest.mark.parametrize(("retry", "deadline", "duration"), [(2, 15, 10), (10, 10, 15), (2, 9, 9)])
def test_times_out_of_order_are_refused(retry: float, deadline: float, duration: float) -> None:
    with pytest.raises(Rejected, match="out of order"):
        Candidacy(LEASE, "x", duration=duration, renew_deadline=deadline, retry=retry)


def test_every_namespace_has_exactly_one_shard() -> None:
    shards = [Shard(index, 4) for index in range(4)]

    counts = Counter(
        sum(shard.owns(Key(f"team-{number}", "a")) for shard in shards) for number in range(500)
    )

    assert counts == {1: 500}


def test_shards_are_alike_in_size_and_the_same_everywhere() -> None:
    sizes = Counter(shard_of(f"team-{number}", 4) for number in range(4000))

    assert all(850 < size < 1150 for size in sizes.values())
    # Written down once: another answer in another release would move namespaces about.
    assert [shard_of(name, 8) for name in ("default", "shop", "kube-system")] == [5, 5, 1]


def test_a_shard_outside_its_count_is_refused() -> None:
    with pytest.raises(Rejected, match="no such shard"):
        Shard(4, 4)
    assert Shard().lease("fairlead") == "fairlead"
    assert Shard(1, 4).lease("fairlead") == "fairlead-1-of-4"
