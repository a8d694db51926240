"""A real Prometheus answers with a value, no data or an error, and we tell them apart."""

import asyncio
import math
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.prometheus import Access, NoData, Prometheus, SeriesSet, Values
from tests.unit.clients.processes.programs import until
from tools.cluster import pki
from tools.cluster.process import free_port
from tools.servers.prometheus import PrometheusServer

pytestmark = pytest.mark.xdist_group("prometheus")
PASSWORD = "correct horse"  # noqa: S105 - of a server that lives for one test
HASHED = "$2b$04$abcdefghijklmnopqrstuujydOTSfIH/d5oUHpsygqV5X9xJLQc6e"


@pytest.fixture
async def client(server: PrometheusServer) -> AsyncIterator[Prometheus]:
    async with Prometheus(Access(server.url)) as ready:
        yield ready


@pytest.mark.requirement("canary R3")
async def test_value_no_data_and_error_are_three_things(client: Prometheus) -> None:
    value = await client.instant("vector(7)")
    nothing = await client.instant("no_such_metric")
    with pytest.raises(errors.Rejected, match=r"prometheus refused the query: .*parse error"):
        await client.instant("sum(")

    assert isinstance(value, Values)
    assert value.only() == 7.0
    assert nothing == NoData("no series matches the query")


async def test_a_scalar_is_a_value_too(client: Prometheus) -> None:
    found = await client.instant("3 + 4", at=time.time() - 60)

    assert isinstance(found, Values)
    assert found.only() == 7.0


async def test_nan_is_no_data_and_infinite_is_a_value(client: Prometheus) -> None:
    nan = await client.instant("vector(0) / 0")
    over, under = await client.instant("vector(1) / 0"), await client.instant("vector(-1) / 0")
    mixed = await client.instant('vector(0) / 0 or label_replace(vector(5), "a", "b", "", "")')

    assert nan == NoData("only NaN: division by zero")
    assert isinstance(over, Values)
    assert isinstance(under, Values)
    assert (over.only(), under.only()) == (math.inf, -math.inf)
    assert isinstance(mixed, Values)
    assert [(sample.labels, sample.value) for sample in mixed.samples] == [({"a": "b"}, 5.0)]


async def test_several_numbers_are_not_taken_for_one(client: Prometheus) -> None:
    found = await client.instant('vector(1) or label_replace(vector(2), "a", "b", "", "")')

    assert isinstance(found, Values)
    with pytest.raises(errors.Rejected, match="several values instead of one: 2"):
        found.only()


@pytest.mark.parametrize("query", ['"text"', "up[1m]"])
async def test_an_answer_without_numbers_is_the_querys_fault(
    client: Prometheus, query: str
) -> None:
    with pytest.raises(errors.Rejected, match="instead of numbers"):
        await client.instant(query)


async def test_a_series_has_its_missing_points(client: Prometheus) -> None:
    now = float(int(time.time()))
    halves = f"(vector(time()) < {now - 2}) * 0 + 1 or vector(0) / 0"

    found = await client.over(halves, (now - 4, now), 1.0)
    nothing = await client.over("vector(0) / 0", (now - 4, now), 1.0)
    absent = await client.over("no_such_metric", (now - 4, now), 1.0)

    assert isinstance(found, SeriesSet)
    assert [value for _, value in found.series[0].points] == [1.0, 1.0, None, None, None]
    assert isinstance(nothing, NoData)
    assert absent == NoData("no series matches the query")


async def test_too_many_points_are_refused_with_its_words(client: Prometheus) -> None:
    with pytest.raises(errors.Rejected, match="exceeded maximum resolution"):
        await client.over("vector(1)", (0.0, 100_000.0), 1.0)


async def test_a_long_answer_is_cut_off(server: PrometheusServer) -> None:
    async with Prometheus(Access(server.url, max_bytes=100)) as client:
        with pytest.raises(errors.Rejected, match="longer than allowed: 100 bytes"):
            await client.over("vector(1)", (0.0, 1000.0), 1.0)


async def test_one_that_is_down_is_unavailable() -> None:
    async with Prometheus(Access(f"http://127.0.0.1:{free_port()}")) as client:
        with pytest.raises(errors.Unavailable, match="did not answer"):
            await client.instant("vector(1)")


async def test_one_that_is_slow_is_unavailable_until_it_is_not(server: PrometheusServer) -> None:
    async with Prometheus(Access(server.url, timeout_seconds=0.5)) as client:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            await until(lambda: stopped(server.pid))
            with pytest.raises(errors.Unavailable, match=r"no answer within 0\.5 s"):
                await client.instant("vector(1)")
        finally:
            os.kill(server.pid, signal.SIGCONT)

        async with asyncio.timeout(20):
            found = await until_answered(client)

    assert isinstance(found, Values)


def stopped(pid: int) -> bool:
    """A signal reaches the threads of a process one by one."""
    threads = Path(f"/proc/{pid}/task").glob("*/stat")
    return all(stat.read_text().rpartition(")")[2].split()[0] == "T" for stat in threads)


async def until_answered(client: Prometheus) -> Values | NoData:
    while True:
        try:
            return await client.instant("vector(1)")
        except errors.Unavailable:
            await asyncio.sleep(0.05)


async def test_certificates_and_passwords_are_checked_on_both_sides(
    prometheus_program: Path, tmp_path: Path
) -> None:
    authority = pki.Authority(tmp_path)
    pair = authority.server()
    web = {
        "tls_server_config": {"cert_file": str(pair.certificate), "key_file": str(pair.key)},
        "basic_auth_users": {"reader": HASHED},
    }
    right, wrong = tmp_path / "right", tmp_path / "wrong"
    right.write_text(f"{PASSWORD}\n")
    wrong.write_text("battery staple")

    with PrometheusServer(tmp_path / "server", web) as server:
        url, ca = server.url, authority.certificate
        good = Access(url, username="reader", password_file=right, ca_file=ca)
        async with Prometheus(good) as client:
            found = await client.instant("vector(1)")
        unknown = Access(url, username="reader", password_file=wrong, ca_file=ca)
        async with Prometheus(unknown) as client:
            with pytest.raises(errors.Unauthorised, match="denied access, status 401"):
                await client.instant("vector(1)")
        async with Prometheus(Access(url, username="reader", password_file=right)) as client:
            with pytest.raises(errors.Rejected, match="certificate that is not trusted"):
                await client.instant("vector(1)")

    assert isinstance(found, Values)
