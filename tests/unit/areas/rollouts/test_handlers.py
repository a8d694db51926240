"""Handlers made of ports: what each effect asks, and what its answer says."""

import asyncio
import dataclasses
import datetime as dt
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis import conditions
from fairlead.analysis.conditions import Phase
from fairlead.analysis.samples import Series
from fairlead.analysis.verdict import NoData
from fairlead.areas.rollouts import handlers
from fairlead.areas.rollouts.domain import messages
from fairlead.areas.rollouts.domain.observation import ObservedRoute, Pods
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.ports import Slots
from fairlead.checks import verdicts
from fairlead.checks.spec import Check, CheckKind, Finding, When
from fairlead.checks.subject import News, Subject
from fairlead.engine import machine as machines
from fairlead.engine import outbox
from fairlead.engine.messages import StreamName
from fairlead.traffic.routes import STANDBY
from tests.fakes.checks import registry
from tests.unit.areas.rollouts.domain.world import START, version

CONTEXT = outbox.EffectContext(StreamName("rollout/shop"), "key", 1)
MINUTE = dt.timedelta(minutes=1)
JUDGED = {"metrics": [{"name": "latency"}], "scoreThresholds": {"marginal": 50, "pass": 90}}


class Ports:
    """All ports in one, remembering what was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.answer: conditions.Answer | errors.FairleadError = conditions.Answered(0.5)
        self.opens = (True, "go")
        self.both = Series({"latency": [1.0, 2.0, 3.0] * 5}, {"latency": [1.0, 2.0, 3.0] * 5})

    async def ensure(self, wanted: messages.EnsureVersion) -> None:
        self.asked.append(wanted)

    async def remove_canary(self, wanted: messages.RemoveCanary) -> None:
        self.asked.append(wanted)

    async def let_go(self, gone: messages.ReleaseResources) -> None:
        self.asked.append(("let go", gone.order))

    async def pods(self, name: str) -> Slots:
        return Slots(Pods("v1", 3, 3, 3), None, Pods("v1", 1, 1, 0))

    async def route(self, wanted: messages.SetRoute) -> None:
        self.asked.append(wanted)

    async def shown(self, name: str) -> ObservedRoute | None:
        return ObservedRoute(7, 10)

    async def give_back(self, gone: messages.ReleaseResources) -> None:
        self.asked.append(("give back", gone.order))

    async def ask(self, check: Check, about: Subject) -> conditions.Answer:
        if isinstance(self.answer, errors.FairleadError):
            raise self.answer
        return self.answer

    async def compare(self, check: Check, about: Subject) -> Series:
        return self.both

    async def is_open(self, check: Check, about: Subject) -> tuple[bool, str]:
        return self.opens

    async def notify(self, news: News) -> None:
        self.asked.append(news)

    async def publish(self, status: messages.PublishStatus) -> None:
        self.asked.append(status)

    async def reset_override(self, name: str) -> None:
        self.asked.append(("reset", name))


@pytest.fixture
def ports() -> Ports:
    return Ports()


async def perform(ports: Ports, effect: messages.Effect) -> Any:
    world = handlers.RolloutPorts(ports, ports, ports, registry(ports), lambda: START)
    return await handlers.handlers(world)[type(effect)].perform(effect, CONTEXT)


async def found(ports: Ports, check: Check) -> Finding:
    judged = await perform(ports, measure(check))
    assert (type(judged), judged.ticket) == (messages.Judged, 5)
    finding: Finding = judged.findings[0]
    return finding


def measure(*checks: Check, since: dt.datetime = START - MINUTE) -> messages.Measure:
    return messages.Measure("shop", 5, checks, version("v1"), version("v2"), 10, since)


def test_every_effect_has_a_handler(ports: Ports) -> None:
    world = handlers.RolloutPorts(ports, ports, ports, registry(ports), lambda: START)

    assert set(handlers.handlers(world)) == set(machines.members(messages.Effect))


async def test_an_effect_that_names_another_rollout_than_its_stream_reaches_no_port(
    ports: Ports,
) -> None:
    for effect in (
        messages.EnsureVersion("other", 1, Slot.PRIMARY, version("v2"), 0),
        messages.PublishStatus("../other", RolloutStatus()),
        messages.Observe("other"),
    ):
        with pytest.raises(errors.Rejected, match="rollout/shop asks for another rollout: "):
            await perform(ports, effect)

    assert ports.asked == []


class Counts:
    """Who counts requests."""

    def traffic(self, about: Subject) -> tuple[SlotTraffic, ...]:
        assert (about.primary.revision, about.canary.revision) == ("v1", "v2")
        return (SlotTraffic(Slot.CANARY, 29, 4, 14.0),)


async def test_a_round_brings_along_what_the_slots_did(ports: Ports) -> None:
    world = handlers.RolloutPorts(
        ports, ports, ports, registry(ports), lambda: START, counter=Counts()
    )

    round_ = measure(Check("errors", "up", high=1))
    judged = await handlers.handlers(world)[messages.Measure].perform(round_, CONTEXT)

    assert isinstance(judged, messages.Judged)
    assert judged.traffic == (SlotTraffic(Slot.CANARY, 29, 4, 14.0),)


async def test_writes_go_to_their_ports_with_their_order(ports: Ports) -> None:
    writes: list[messages.Effect] = [
        messages.EnsureVersion("shop", 1, Slot.CANARY, version("v2"), 3),
        messages.SetRoute("shop", 2, STANDBY),
        messages.RemoveCanary("shop", 3),
        messages.PublishStatus("shop", RolloutStatus(phase="Stable", round=4)),
    ]
    for write in writes:
        assert await perform(ports, write) is None

    assert ports.asked == writes


async def test_news_are_told_in_the_words_of_notifiers(ports: Ports) -> None:
    await perform(ports, messages.Notify("shop", "Promoted", "v2", START))

    assert ports.asked == [News("shop", "Promoted", "v2", START)]


async def test_letting_go_gives_the_route_back_before_anything_stops(ports: Ports) -> None:
    await perform(ports, messages.ReleaseResources("shop", 9))
    await perform(ports, messages.ResetOverride("shop"))

    assert ports.asked == [("give back", 9), ("let go", 9), ("reset", "shop")]


async def test_a_look_is_answered_with_everything_there_is(ports: Ports) -> None:
    seen = await perform(ports, messages.Observe("shop"))

    assert seen.observed.primary == Pods("v1", 3, 3, 3)
    assert (seen.observed.canary, seen.observed.route, seen.observed.at) == (
        None,
        ObservedRoute(7, 10),
        START,
    )


@pytest.mark.parametrize(
    ("answer", "phase", "reason"),
    [
        (conditions.Answered(0.5), Phase.SUCCESSFUL, "0.5"),
        (conditions.Answered(3.0), Phase.FAILED, "result 3 does not meet result < 1"),
        (conditions.Silent(), None, "no data yet"),
        (conditions.Answered(float("nan")), None, "no data yet"),
        (conditions.Unanswered("502"), Phase.ERROR, "502"),
        (errors.Unavailable("prometheus is down", hint="wait"), Phase.ERROR, "down; wait"),
    ],
)
async def test_a_query_is_held_against_its_conditions(
    ports: Ports,
    answer: conditions.Answer | errors.FairleadError,
    phase: Phase | None,
    reason: str,
) -> None:
    ports.answer = answer

    finding = await found(ports, Check("errors", success="result < 1"))

    assert finding.phase is phase
    assert reason in finding.reason


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        (NoData.WAIT, None),
        (NoData.PASS, Phase.SUCCESSFUL),
        (NoData.FAIL, Phase.FAILED),
        (NoData.INCONCLUSIVE, Phase.INCONCLUSIVE),
    ],
)
async def test_no_data_follows_the_policy_of_the_check(
    ports: Ports, policy: NoData, phase: Phase | None
) -> None:
    ports.answer = conditions.Silent()

    assert (await found(ports, Check("errors", high=1.0, no_data=policy))).phase is phase


@pytest.mark.parametrize("policy", list(NoData))
async def test_silence_in_the_first_window_is_no_news_whatever_the_policy(
    ports: Ports, policy: NoData
) -> None:
    ports.answer = conditions.Silent("no series matches")
    given: dict[str, Any] = {"high": 1.0, "no_data": policy}

    early = await perform(
        ports,
        measure(
            Check("usual", **given),
            Check("quick", **given, window=dt.timedelta(seconds=59)),
            Check("before", **given, when=When.START),
            since=START - dt.timedelta(seconds=59),
        ),
    )

    usual, quick, before = early.findings
    assert (usual.phase, usual.reason) == (None, "no data yet: no series matches")
    assert (quick.phase is None) == (before.phase is None) == (policy is NoData.WAIT)


async def test_a_closed_gate_is_no_failure_and_an_open_one_passes(ports: Ports) -> None:
    gate = Check("board", kind=CheckKind.GATE)
    assert (await found(ports, gate)).phase is Phase.SUCCESSFUL

    ports.opens = (False, "meeting at 3")

    finding = await found(ports, gate)
    assert (finding.phase, finding.reason) == (None, "closed: meeting at 3")


async def test_the_judge_compares_both_sides_and_tells_its_score(ports: Ports) -> None:
    check = Check("all", kind=CheckKind.JUDGE, judge=JUDGED)
    assert (await found(ports, check)).phase is Phase.SUCCESSFUL

    ports.both = dataclasses.replace(ports.both, experiment={"latency": [10.0, 20.0, 30.0] * 5})

    finding = await found(ports, check)
    assert finding.phase is Phase.FAILED
    assert "latency is High" in finding.reason


async def test_the_judge_waits_for_enough_moments_whatever_the_policy(ports: Ports) -> None:
    ports.both = Series({"latency": [1.0] * 4}, {"latency": [None] * 4})
    check = Check("all", kind=CheckKind.JUDGE, judge=JUDGED, no_data=NoData.FAIL)

    finding = await found(ports, check)

    assert (finding.phase, finding.reason) == (None, "no data yet: 4 of 5 samples")


@pytest.mark.parametrize(
    ("policy", "phase"),
    [
        (NoData.WAIT, None),
        (NoData.PASS, Phase.SUCCESSFUL),
        (NoData.FAIL, Phase.FAILED),
        (NoData.INCONCLUSIVE, Phase.INCONCLUSIVE),
    ],
)
@pytest.mark.parametrize("empty", ["control", "experiment"])
async def test_a_side_without_a_number_follows_the_policy_of_the_check(
    ports: Ports, empty: str, policy: NoData, phase: Phase | None
) -> None:
    silent: Any = {empty: {"latency": [None] * 15}}
    ports.both = dataclasses.replace(ports.both, **silent)

    finding = await found(ports, Check("all", kind=CheckKind.JUDGE, judge=JUDGED, no_data=policy))

    assert finding.phase is phase
    assert "no data" in finding.reason


async def test_a_policy_of_the_metric_goes_before_that_of_the_check(ports: Ports) -> None:
    canary = {"noData": "pass"}
    metric = {"name": "latency", "analysisConfigurations": {"canary": canary}}
    ports.both = dataclasses.replace(ports.both, experiment={"latency": [None] * 15})
    check = Check("all", kind=CheckKind.JUDGE, judge={**JUDGED, "metrics": [metric]})

    assert (await found(ports, check)).phase is Phase.SUCCESSFUL


@pytest.mark.parametrize(
    ("answer", "phase"),
    [
        (conditions.Answered(0.5), Phase.SUCCESSFUL),
        (conditions.Answered(3), Phase.FAILED),
        (conditions.Silent(), None),
        (errors.Unavailable("the page is down", hint="wait"), Phase.ERROR),
    ],
)
async def test_a_number_from_the_web_is_held_against_its_bounds(
    ports: Ports, answer: conditions.Answer | errors.FairleadError, phase: Phase | None
) -> None:
    ports.answer = answer

    assert (await found(ports, Check("orders", source="web", high=1.0))).phase is phase


async def test_checks_of_a_round_are_asked_at_the_same_time(ports: Ports) -> None:
    meeting = asyncio.Barrier(3)

    class Slow(Ports):
        async def ask(self, check: Check, about: Subject) -> conditions.Answer:
            await meeting.wait()
            return conditions.Answered(0.5)

    async with asyncio.timeout(60):
        judged = await perform(Slow(), measure(*(Check(name) for name in ("a", "b", "c"))))

    assert [finding.check for finding in judged.findings] == ["a", "b", "c"]


async def test_a_long_answer_is_told_shortly(ports: Ports) -> None:
    ports.answer = conditions.Unanswered("x" * 10_000)

    assert len((await found(ports, Check("errors"))).reason) == verdicts.MOST_TOLD
