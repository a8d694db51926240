"""The port `Metrics` over a real Prometheus: what each check comes to, and what it says."""

import contextlib
import dataclasses
import datetime as dt
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis.conditions import Answered, Silent, Unanswered
from fairlead.checks import wiring
from fairlead.checks.registry import Registry
from fairlead.checks.sources.prometheus import PrometheusSource
from fairlead.checks.spec import Check, CheckKind, When
from fairlead.checks.subject import Side, Subject
from fairlead.settings import MeasureSettings
from tests.contract.prometheus.test_client import HASHED, PASSWORD, stopped
from tests.unit.checks.about import naming, version
from tests.unit.clients.processes.programs import until
from tools.cluster import pki
from tools.cluster.process import free_port
from tools.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.xdist_group("prometheus")
TWO = 'vector(1) or label_replace(vector(2), "a", "b", "", "")'


def now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


def about(since: float = 600.0, weight: int = 10, at: dt.datetime | None = None) -> Subject:
    began = (at or now()) - dt.timedelta(seconds=since)
    return Subject("team/shop", 7, version("v1"), version("v2"), weight, began)


@contextlib.asynccontextmanager
async def asking(
    url: str, clock: Callable[[], dt.datetime] = now, /, **more: Any
) -> AsyncIterator[PrometheusSource]:
    chosen = MeasureSettings(prometheus_url=url, prometheus_tick_seconds=0.01, **more)
    registry = Registry()
    async with wiring.opened(chosen, registry, naming, clock):
        source = registry.sources["prometheus"]
        assert isinstance(source, PrometheusSource)
        yield source


@pytest.fixture
def moment() -> dt.datetime:
    """It stays now for the whole test: windows are counted in seconds."""
    return now()


@pytest.fixture
async def metrics(server: PrometheusServer, moment: dt.datetime) -> AsyncIterator[PrometheusSource]:
    async with asking(server.url, lambda: moment) as ready:
        yield ready


@pytest.mark.requirement("canary R3")
async def test_every_answer_is_a_value_silence_or_a_reason(metrics: PrometheusSource) -> None:
    async def ask(query: str, **more: Any) -> object:
        return await metrics.ask(Check("c", query, **more), about())

    assert await ask("vector(7)") == Answered(7.0)
    assert await ask("scalar(vector(7))") == Answered(7.0)
    assert await ask("vector(1)/0") == Answered(float("inf"))
    assert await ask("vector(-1)/0") == Answered(float("-inf"))
    assert await ask("vector(0)/0") == Silent("only NaN: division by zero")
    assert await ask("no_such_metric") == Silent("no series matches the query")
    assert await ask(TWO, high=3.0) == Answered([1.0, 2.0])
    assert await ask(TWO, success="all(result, {# < 3})") == Answered([1.0, 2.0])
    for query, said in {
        "sum(": "parse error",
        TWO: "several values instead of one: 2",
        '"text"': "returns a string instead of numbers",
        "up[1m]": "returns a matrix instead of numbers",
        "x{a='{{ nobody }}'}": "missing query argument: nobody",
    }.items():
        answer = await ask(query, success="result < 3")
        assert isinstance(answer, Unanswered)
        assert said in answer.reason


async def test_a_number_is_never_older_than_the_weight(
    metrics: PrometheusSource, moment: dt.datetime
) -> None:
    """Prometheus itself reads the window that was sent."""
    window = "count_over_time(vector(1)[{{ interval }}:1s])"

    full = await metrics.ask(Check("c", window), about())
    young = await metrics.ask(Check("c", window), about(since=10.5, at=moment))
    own = await metrics.ask(Check("c", window, window=dt.timedelta(seconds=20)), about())
    first = await metrics.ask(Check("c", window), about(since=0.0, at=moment))
    start = Check("c", window, when=When.START)
    before = await metrics.ask(start, about(since=0.0, at=moment))

    answers = (full, young, own, first, before)
    assert answers == tuple(map(Answered, (60.0, 10.0, 20.0, 1.0, 60.0)))


async def test_both_sides_are_sampled_at_the_same_moments(
    metrics: PrometheusSource, moment: dt.datetime
) -> None:
    step = 5
    edge = (int(moment.timestamp()) // step) * step - 2 * step
    known = [
        {"name": "steady", "query": "vector(3)"},
        {"name": "late", "query": f"vector(1) and on() (vector(time()) >= {edge})"},
        {"name": "slot", "query": 'label_replace(vector(1), "x", "{{ target }}", "", "")'},
        {"name": "never", "query": "no_such_metric"},
        {"name": "nan", "query": "vector(0)/0"},
    ]
    check = Check(
        "all", kind=CheckKind.JUDGE, judge={"metrics": known}, window=dt.timedelta(seconds=step)
    )

    sides = await metrics.compare(check, about(since=32.0, at=moment))

    count = len(sides.control["steady"])
    assert count in {5, 6}
    assert sides.control == sides.experiment
    assert sides.control["steady"] == [3.0] * count
    assert sides.control["slot"] == [1.0] * count
    assert sides.control["never"] == sides.control["nan"] == [None] * count
    late = sides.control["late"]
    assert isinstance(late, list)
    assert late[-2:] == [1.0, 1.0]
    assert late[:2] == [None, None]


@pytest.mark.parametrize(("control", "is_baseline"), [(Side.PRIMARY, 0.0), (Side.BASELINE, 1.0)])
async def test_the_control_is_the_baseline_where_there_is_one(
    metrics: PrometheusSource, control: Side, is_baseline: float
) -> None:
    asked_of = 'label_replace(vector(1), "t", "{{ target }}", "", "")'
    baseline = 'label_replace(vector(1), "t", "shop-baseline", "", "")'
    query = f"count({asked_of} and {baseline}) or vector(0)"
    judge = {"metrics": [{"name": "who", "query": query}]}
    check = Check("all", kind=CheckKind.JUDGE, judge=judge, window=dt.timedelta(seconds=5))
    asked = dataclasses.replace(about(since=32.0), control=control)

    sides = await metrics.compare(check, asked)

    who = sides.control["who"], sides.experiment["who"]
    assert [set(side) for side in who if isinstance(side, list)] == [{is_baseline}, {0.0}]


async def test_a_step_that_began_now_has_no_sample_yet(metrics: PrometheusSource) -> None:
    judge = {"metrics": [{"name": "a", "query": "vector(1)"}]}

    sides = await metrics.compare(Check("all", kind=CheckKind.JUDGE, judge=judge), about(since=3.0))

    assert (sides.control, sides.experiment) == ({"a": []}, {"a": []})


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sum(", "parse error"),
        (TWO, "query of metric a gives several series instead of one: 2"),
        ("x{a='{{ nobody }}'}", "missing query argument: nobody"),
    ],
)
async def test_what_cannot_be_compared_is_said(
    metrics: PrometheusSource, query: str, said: str
) -> None:
    judge = {"metrics": [{"name": "ok", "query": "vector(1)"}, {"name": "a", "query": query}]}

    with pytest.raises(errors.Rejected, match=said):
        await metrics.compare(Check("all", kind=CheckKind.JUDGE, judge=judge), about())


async def test_a_rollout_that_the_platform_does_not_run_is_an_error(
    metrics: PrometheusSource,
) -> None:
    asked = Subject("other", 1, version("v1"), version("v2"), 10, now())

    answer = await metrics.ask(Check("c", "vector(1)"), asked)

    assert answer == Unanswered("no such rollout: other; look at their list")


async def test_down_slow_and_locked_servers_are_told_apart_and_come_back(
    server: PrometheusServer,
) -> None:
    check = Check("c", "vector(1)")

    async with asking(f"http://127.0.0.1:{free_port()}") as nobody:
        down = await nobody.ask(check, about())
    async with asking(server.url, prometheus_seconds=0.5) as metrics:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await until(lambda: stopped(server.pid))
            slow = await metrics.ask(check, about())
        finally:
            os.kill(server.pid, signal.SIGCONT)
        await until_answered(metrics, check)
    async with asking("") as nothing:
        unset = await nothing.ask(check, about())
        other = await nothing.ask(Check("c", "vector(1)", server="pay"), about())

    for answer, said in (
        (down, "did not answer"),
        (slow, "no answer within 0.5 s"),
        (unset, "FAIRLEAD_PROMETHEUS_URL"),
        (other, "FAIRLEAD_PROMETHEUS_SERVERS"),
    ):
        assert isinstance(answer, Unanswered)
        assert said in answer.reason


async def until_answered(metrics: PrometheusSource, check: Check) -> None:
    end = time.monotonic() + 20
    while await metrics.ask(check, about()) != Answered(1.0):
        assert time.monotonic() < end


async def test_certificate_and_password_come_from_settings(
    prometheus_program: Path, tmp_path: Path
) -> None:
    authority = pki.Authority(tmp_path)
    pair = authority.server()
    web = {
        "tls_server_config": {"cert_file": str(pair.certificate), "key_file": str(pair.key)},
        "basic_auth_users": {"reader": HASHED},
    }
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    check = Check("c", "vector(1)")
    reader = {"prometheus_username": "reader", "prometheus_password_file": str(password)}
    ca = {"prometheus_ca_file": str(authority.certificate)}

    with PrometheusServer(tmp_path / "server", web) as server:
        async with asking(server.url, **reader, **ca) as metrics:
            good = await metrics.ask(check, about())
        async with asking(server.url, **reader) as metrics:
            untrusted = await metrics.ask(check, about())
        async with asking(server.url, **ca) as metrics:
            unknown = await metrics.ask(check, about())
            password.write_text("wrong")
        async with asking(server.url, **reader, **ca) as metrics:
            wrong = await metrics.ask(check, about())

    assert good == Answered(1.0)
    assert isinstance(untrusted, Unanswered)
    assert "certificate that is not trusted" in untrusted.reason
    for answer in (unknown, wrong):
        assert isinstance(answer, Unanswered)
        assert "status 401" in answer.reason
    assert PASSWORD not in str((untrusted, unknown, wrong))
