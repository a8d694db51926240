"""Leases and Events as a real API server takes them."""

import asyncio

import pytest

from fairlead.kubernetes.client.clock import Clock
from fairlead.kubernetes.controller.leader import LEASES, Candidacy, Election, Term
from fairlead.kubernetes.objects import Selection
from fairlead.kubernetes.writes.events import EVENTS, Occurrence, Recorder
from tests.contract.kubernetes import PATIENCE, Api
from tests.contract.kubernetes_samples import WIDGETS, widget
from tests.fakes.kubernetes.hand_clock import HandClock


async def test_a_lease_passes_from_one_leader_to_the_next(api: Api) -> None:
    reigns: list[tuple[str, int]] = []
    leading = asyncio.Event()

    async def stand(identity: str) -> None:
        async def lead(term: Term) -> None:
            reigns.append((identity, term.token))
            leading.set()
            await asyncio.Event().wait()

        quick = {"duration": 40.0, "renew_deadline": 30.0, "retry": 0.05}
        candidacy = Candidacy(api.key("election"), identity, **quick)
        await Election(api.client, candidacy).run(lead)

    first = asyncio.create_task(stand("first"))
    async with asyncio.timeout(PATIENCE):
        await leading.wait()
    leading.clear()
    second = asyncio.create_task(stand("second"))
    first.cancel()
    async with asyncio.timeout(PATIENCE):
        await leading.wait()

    lease = await api.client.get(LEASES, api.key("election"))
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    released = await api.client.get(LEASES, api.key("election"))
    assert [identity for identity, _ in reigns] == ["first", "second"]
    assert reigns[0][1] < reigns[1][1]
    assert lease["spec"]["holderIdentity"] == "second"
    assert not released["spec"].get("holderIdentity")


async def test_two_candidates_at_once_give_one_leader(api: Api) -> None:
    elected: asyncio.Queue[str] = asyncio.Queue()

    async def stand(identity: str) -> None:
        async def lead(term: Term) -> None:
            elected.put_nowait(identity)
            await asyncio.Event().wait()

        await Election(api.client, Candidacy(api.key("race"), identity)).run(lead)

    tasks = [asyncio.create_task(stand(f"candidate-{number}")) for number in range(8)]
    async with asyncio.timeout(PATIENCE):
        first = await elected.get()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await elected.get()

    lease = await api.client.get(LEASES, api.key("race"))
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert lease["spec"]["holderIdentity"] == first


async def test_events_are_taken_and_counted(api: Api) -> None:
    clock = HandClock()
    # The wall clock stays true: the API server does not care, but a person reading would.
    recorder = Recorder(api.client, "pod-1", Clock(monotonic=lambda: clock.seconds))
    parent = await api.client.create(WIDGETS, widget(api.namespace, "a"))

    for reason in ("Shifted", "Shifted", "RolledBack"):
        recorder.record(Occurrence(parent, reason, "canary at 10 %", kind="Warning"))
        await recorder.flush()
        await clock.advance(40)

    chosen = Selection(api.namespace)
    found = {e["reason"]: e async for e in api.client.each(EVENTS, chosen)}
    assert set(found) == {"Shifted", "RolledBack"}
    assert found["Shifted"]["series"]["count"] == 2
    assert found["RolledBack"]["regarding"]["uid"] == parent["metadata"]["uid"]
