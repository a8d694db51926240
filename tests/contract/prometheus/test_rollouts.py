"""A rollout judged by a real Prometheus: on, home, waiting, comparing, and many at once."""

import asyncio
import datetime as dt
import json
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from fairlead.analysis.limits import Limits
from fairlead.analysis.verdict import NoData
from fairlead.areas.rollouts.domain import states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Check, CheckKind, When
from fairlead.values import Percent
from tests.contract.prometheus.rollouts_in_memory import InMemoryRollouts, in_memory
from tests.contract.prometheus.test_client import stopped
from tests.unit.checks.web_server import SILENCE, Stand, answer, standing
from tests.unit.clients.processes.programs import until
from tools.cluster.process import free_port
from tools.servers.prometheus import PrometheusServer

pytestmark = [pytest.mark.xdist_group("prometheus"), pytest.mark.slow]
SECOND = dt.timedelta(seconds=1)
STEP = Strategy(steps=(Pace(Percent(20)), Pace(Percent(50))), pause=SECOND)
GOOD = {"v1": {"rate": "99.9", "factor": "1"}, "v2": {"rate": "99.5", "factor": "1"}}
BAD = {"v1": {"rate": "99.9", "factor": "1"}, "v2": {"rate": "93", "factor": "3"}}
RATE = Check("success", "vector({{ rate }})", low=99.0)
# A time that goes up and down, and is three times as long for a slow version.
TIME = "vector(({{ factor }} * 100) + (time() % 7))"


def spec(*checks: Check, **more: Any) -> Spec:
    return Spec(STEP, checks, **more)


def ok(value: str) -> bytes:
    data = {"resultType": "scalar", "result": [1.0, value]}
    return answer(200, json.dumps({"status": "success", "data": data}).encode())


@pytest.mark.requirement("canary R18")
async def test_a_version_whose_numbers_hold_is_promoted(
    server: PrometheusServer, tmp_path: Path
) -> None:
    async with in_memory(tmp_path, spec(RATE), server.url, GOOD) as port:
        ending, _ = await port.ended()
        weights = port.platforms.of["shop"].weights

    assert ending == "Promoted"
    assert [weight for weight in weights if weight] == [20, 50, 100]


@pytest.mark.requirement("canary R18")
async def test_a_version_whose_numbers_do_not_hold_rolls_back_at_its_first_step(
    server: PrometheusServer, tmp_path: Path
) -> None:
    async with in_memory(tmp_path, spec(RATE), server.url, BAD) as port:
        ending, why = await port.ended()
        weights = port.platforms.of["shop"].weights

    assert ending == "RolledBack"
    assert "success: 1 of 1 measurement failed, limit 0; result 93, limit 99" in why
    assert max(weights) == 20


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("vector(1)/0", "result inf, limit 100"),
        ("vector(-1)/0", "result -inf, limit 99"),
        ("sum(", "parse error"),
        ('"text"', "returns a string instead of numbers"),
        ("x{a='{{ nobody }}'}", "missing query argument: nobody"),
    ],
)
async def test_a_number_that_says_nothing_good_ends_it_with_a_reason(
    server: PrometheusServer, tmp_path: Path, query: str, said: str
) -> None:
    odd = Check("odd", query, low=99.0, high=100.0)

    async with in_memory(tmp_path, spec(odd), server.url) as port:
        ending, why = await port.ended()

    assert ending == "RolledBack"
    assert said in why


async def test_several_numbers_where_one_is_meant_end_it_with_a_reason(
    server: PrometheusServer, tmp_path: Path
) -> None:
    two = 'vector(1) or label_replace(vector(2), "a", "b", "", "")'

    async with in_memory(
        tmp_path, spec(Check("two", two, success="result > 0")), server.url
    ) as port:
        ending, why = await port.ended()

    assert ending == "RolledBack"
    assert "5 errors in a row" in why
    assert "several values instead of one: 2" in why


@pytest.mark.parametrize("query", ["no_such_metric", "vector(0)/0"])
@pytest.mark.parametrize(
    ("policy", "expected"), [(NoData.PASS, "Promoted"), (NoData.FAIL, "RolledBack")]
)
async def test_no_data_passes_or_fails_as_the_check_says(
    server: PrometheusServer, tmp_path: Path, query: str, policy: NoData, expected: str
) -> None:
    silent = Check("silent", query, low=99.0, no_data=policy, window=5 * SECOND)

    async with in_memory(tmp_path, spec(silent), server.url) as port:
        ending, why = await port.ended()

    assert ending == expected
    assert expected == "Promoted" or f"no data: {said(query)}; the policy is fail" in why


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (NoData.WAIT, ": silent: no data yet: no series matches"),
        (NoData.INCONCLUSIVE, "no series matches the query; the policy is inconclusive"),
    ],
)
async def test_no_data_waits_or_pauses_for_a_person(
    server: PrometheusServer, tmp_path: Path, policy: NoData, reason: str
) -> None:
    silent = Check("silent", "no_such_metric", low=99.0, no_data=policy, window=5 * SECOND)
    desired = spec(silent, patience=30 * SECOND)

    async with in_memory(tmp_path, desired, server.url) as port:
        await port.want("v2")
        state = await port.until_paused()

    assert reason in state.rollout.paused.why
    assert state.rollout.route.weight == 20


def said(query: str) -> str:
    return "no series matches the query" if "such" in query else "only NaN: division by zero"


def judged(**more: Any) -> Check:
    canary = {"direction": "increase"}
    metric = {"name": "time", "query": TIME, "analysisConfigurations": {"canary": canary}}
    limits = Limits(count=1, interval=2 * SECOND)
    return Check(
        "like before",
        kind=CheckKind.JUDGE,
        judge={"metrics": [metric]},
        window=SECOND,
        limits=limits,
        **more,
    )


@pytest.mark.requirement("canary R18")
@pytest.mark.parametrize(
    ("arguments", "expected", "reason"),
    [(GOOD, "Promoted", ""), (BAD, "RolledBack", "time is High")],
)
async def test_the_judge_compares_both_versions_on_a_real_prometheus(
    server: PrometheusServer, tmp_path: Path, arguments: Any, expected: str, reason: str
) -> None:
    async with in_memory(tmp_path, spec(judged()), server.url, arguments) as port:
        ending, why = await port.ended()

    assert ending == expected, why
    assert reason in why


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (answer(503, b'{"status": "error", "error": "busy"}'), "status 503: busy"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{", "did not answer"),
        (answer(200, b'{"status": "succ'), "not in its format"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 4_000_001, "longer than allowed: 4000000 bytes"),
        (answer(401, b"who?"), "denied access, status 401"),
        (answer(302, b"", "Location: http://127.0.0.1:1/"), "status 302"),
        (SILENCE, "no answer within 1 s"),
    ],
)
async def test_a_server_out_of_order_ends_the_run_by_its_limit_and_traffic_stays(
    tmp_path: Path, told: bytes, reason: str
) -> None:
    async with (
        standing([told]) as stand,
        in_memory(tmp_path, spec(RATE), stand.origin, GOOD) as port,
    ):
        ending, why = await port.ended()
        weights = port.platforms.of["shop"].weights

    assert ending == "RolledBack"
    assert "5 errors in a row, limit 4" in why
    assert reason in why
    assert max(weights) == 20
    assert len(stand.heard) == 5


async def test_nobody_there_ends_the_run_by_its_limit(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"

    async with in_memory(tmp_path, spec(RATE), nobody, GOOD) as port:
        ending, why = await port.ended()

    assert ending == "RolledBack"
    assert "did not answer" in why


async def test_a_server_that_comes_back_in_time_costs_nothing(tmp_path: Path) -> None:
    trouble = [answer(503), b"", answer(401), ok("99.9")]

    async with (
        standing(trouble) as stand,
        in_memory(tmp_path, spec(RATE), stand.origin, GOOD) as port,
    ):
        ending, _ = await port.ended()

    assert ending == "Promoted"


async def test_a_real_server_that_stalls_and_wakes_costs_nothing(
    server: PrometheusServer, tmp_path: Path
) -> None:
    async with in_memory(tmp_path, spec(RATE), server.url, GOOD) as port:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await until(lambda: stopped(server.pid))
            await port.want("v2")
            await until_told(port, "success", "no answer within 1 s")
            assert (await port.state()).rollout.route.weight == 20
        finally:
            os.kill(server.pid, signal.SIGCONT)
        ending, _ = await port.ended()

    assert ending == "Promoted"


async def until_told(port: InMemoryRollouts, check: str, words: str) -> None:
    async with asyncio.timeout(120):
        while True:
            state = await port.state()
            watching = isinstance(state, states.Analysing | states.Queued)
            if watching and words in state.round.reasons.get(check, ""):
                return
            await port.wind()


async def test_a_gate_holds_a_rollout_up_until_it_opens(tmp_path: Path) -> None:
    closed = answer(403, b'{"reason": "meeting at 3"}')

    async with standing([closed]) as stand:
        gate = Check("board", f"{stand.origin}/gate", CheckKind.GATE, When.START)
        async with in_memory(tmp_path, spec(gate), "", hooks_hosts=stand.origin) as port:
            await port.want("v2")
            await until_told(port, "board", "closed: meeting at 3")
            assert max(port.platforms.of["shop"].weights) == 0
            stand.answers[:] = [answer(200, b"agreed")]
            ending, _ = await port.ended()

    assert ending == "Promoted"


@pytest.mark.parametrize(
    ("told", "ending", "why"),
    [
        (answer(200, b'{"queue": [7]}'), "Promoted", ""),
        (answer(200, b'{"queue": [700]}'), "RolledBack", "result 700, limit 100"),
        (answer(404, b"nothing here"), "RolledBack", "status 404: nothing here"),
    ],
)
async def test_a_number_from_the_web_decides(
    tmp_path: Path, told: bytes, ending: str, why: str
) -> None:
    async with standing([told]) as stand:
        queue = Check("queue", f"{stand.origin}/numbers#/queue/0", source="web", high=100.0)
        async with in_memory(tmp_path, spec(queue), "", hooks_hosts=stand.origin) as port:
            found = await port.ended()

    assert found[0] == ending
    assert why in found[1]


async def test_a_host_that_nobody_allowed_is_never_called(tmp_path: Path) -> None:
    async with standing([answer(200, b"1")]) as stand:
        queue = Check("queue", stand.origin, source="web", high=100.0)
        async with in_memory(tmp_path, spec(queue), "") as port:
            ending, why = await port.ended()

    assert ending == "RolledBack"
    assert "host may not be called" in why
    assert not stand.heard


async def test_news_of_a_rollout_reach_who_wants_them(tmp_path: Path) -> None:
    async with standing([answer()]) as stand:
        news = f"{stand.origin}/news"
        async with in_memory(tmp_path, spec(), "", hooks_news_url=news) as port:
            await port.ended()
            async with asyncio.timeout(120):
                while not {"StepReached", "Promoted"} <= kinds(stand):
                    await port.wind()


def kinds(stand: Stand) -> set[str]:
    return {json.loads(heard.body)["kind"] for heard in stand.heard}


async def test_fifty_rollouts_send_a_query_they_share_once_a_tick(
    server: PrometheusServer, tmp_path: Path
) -> None:
    """Counted by Prometheus itself."""
    names = [f"shop-{index}" for index in range(50)]
    check = Check("shared", "vector(99.9)", low=99.0)

    async with in_memory(tmp_path, spec(check), server.url, prometheus_tick_seconds=5.0) as port:
        for name in names:
            await port.want("v1", name)
        for name in names:
            await port.until(states.Idle, name)
        before = asked(server)
        for name in names:
            await port.want("v2", name)
        began = asyncio.get_running_loop().time()
        endings = [await port.ended(name) for name in names]
        seconds = asyncio.get_running_loop().time() - began
        sent = asked(server) - before

    assert {ending for ending, _ in endings} == {"Promoted"}
    # Each asked at three steps: 150 questions. A tick is five seconds of real time.
    assert 1 <= sent <= seconds / 5 + 2


def asked(server: PrometheusServer) -> int:
    """How many instant queries it has answered, from its own counters."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=5) as page:  # noqa: S310 - our own server
        lines = page.read().decode().splitlines()
    counts = (
        line.rpartition(" ")[2]
        for line in lines
        if line.startswith("prometheus_http_requests_total") and 'handler="/api/v1/query"' in line
    )
    return sum(int(float(count)) for count in counts)
