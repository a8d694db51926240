"""Programs run as wanted: they start, are found well, are restarted, drained and bounded."""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from fairlead import errors
from fairlead.clients.processes import Limits, LogBounds, Patience, Phase, Program, Supervisor
from fairlead.clients.processes import identity as identities
from tests.unit.clients.processes.programs import QUICK, python, shop_program, until


@pytest.fixture
async def supervisor(tmp_path: Path) -> AsyncIterator[Supervisor]:
    bounds = LogBounds(max_bytes=2000, kept=2, poll_seconds=0.02)
    async with Supervisor(tmp_path / "state", bounds).running() as running:
        yield running
        for instance in running.instances():
            await running.stop(instance.name)


async def get(port: int, path: str = "/") -> tuple[int, str]:
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return answer.status, await answer.text()


async def phase(supervisor: Supervisor, name: str, wanted: Phase) -> None:
    async with asyncio.timeout(60):
        while supervisor.instance(name).phase is not wanted:
            await supervisor.changed(name)


async def test_a_program_serves_on_the_port_it_was_given(supervisor: Supervisor) -> None:
    await supervisor.ensure(shop_program("shop-v1"))

    instance = await supervisor.ready("shop-v1")

    assert instance.phase is Phase.HEALTHY
    status, body = await get(instance.port)
    assert (status, json.loads(body)["version"]) == (200, "shop-v1")


async def test_the_same_request_again_changes_nothing(supervisor: Supervisor) -> None:
    await supervisor.ensure(shop_program())
    first = await supervisor.ready("shop")

    await supervisor.ensure(shop_program())

    assert supervisor.instance("shop") == first


async def test_another_request_under_the_same_name_replaces_the_process(
    supervisor: Supervisor,
) -> None:
    await supervisor.ensure(shop_program())
    first = await supervisor.ready("shop")

    await supervisor.ensure(shop_program("shop", "--delay-ms", "1"))
    second = await supervisor.ready("shop")

    assert first.pid != second.pid
    assert identities.identify(first.pid or 0) is None


async def test_a_killed_program_comes_back_on_its_port(supervisor: Supervisor) -> None:
    await supervisor.ensure(shop_program())
    before = await supervisor.ready("shop")
    assert before.pid is not None

    os.kill(before.pid, signal.SIGKILL)
    await phase(supervisor, "shop", Phase.BACKING_OFF)
    reason = supervisor.instance("shop").reason
    after = await supervisor.ready("shop")

    assert reason.startswith("killed by SIGKILL")
    assert (after.port, after.restarts) == (before.port, 1)
    assert after.pid != before.pid


async def test_a_crash_loop_is_said_with_the_last_words(supervisor: Supervisor) -> None:
    await supervisor.ensure(python("broken", "raise SystemExit('no such table: goods')"))

    with pytest.raises(errors.Unavailable) as refused:
        await supervisor.ready("broken")

    assert "crash looping" in refused.value.message
    assert "ended with code 1, saying: no such table: goods" in refused.value.message
    assert str(supervisor.log("broken")) in refused.value.hint
    assert supervisor.instance("broken").restarts >= 2


async def test_a_crash_loop_ends_when_its_cause_goes_away(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    flag = tmp_path / "repaired"
    text = f"""
import http.server, os, pathlib
if not pathlib.Path({str(flag)!r}).exists(): raise SystemExit(1)
address = ("127.0.0.1", int(os.environ["PORT"]))
http.server.HTTPServer(address, http.server.BaseHTTPRequestHandler).serve_forever()
"""
    await supervisor.ensure(python("broken", text))
    await phase(supervisor, "broken", Phase.CRASH_LOOPING)

    flag.touch()
    await phase(supervisor, "broken", Phase.HEALTHY)

    assert supervisor.instance("broken").reason == ""


async def test_while_it_starts_again_its_last_end_is_still_said(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    """Its first start ends at once; the next ones are silent until they may serve."""
    tried, served = tmp_path / "tried", tmp_path / "served"
    text = f"""
import http.server, os, pathlib, time
tried, served = pathlib.Path({str(tried)!r}), pathlib.Path({str(served)!r})
if not tried.exists(): tried.touch(); raise SystemExit("no configuration")
while not served.exists(): time.sleep(0.01)
address = ("127.0.0.1", int(os.environ["PORT"]))
http.server.HTTPServer(address, http.server.BaseHTTPRequestHandler).serve_forever()
"""
    patience = dataclasses.replace(QUICK, ready_seconds=2.0)
    await supervisor.ensure(python("late", text, patience))
    await until(lambda: supervisor.instance("late").restarts == 1)

    between = supervisor.instance("late")
    with pytest.raises(errors.Unavailable) as refused:
        await supervisor.ready("late")
    served.touch()
    await phase(supervisor, "late", Phase.HEALTHY)

    assert between.phase is Phase.STARTING
    assert between.last_end == "ended with code 1, saying: no configuration"
    assert refused.value.message.endswith(f"; before: {between.last_end}")
    assert supervisor.instance("late").last_end == ""


async def test_a_program_that_cannot_be_started_says_so(supervisor: Supervisor) -> None:
    await supervisor.ensure(Program("missing", ("/no/such/program",), patience=QUICK))

    with pytest.raises(errors.Unavailable, match="cannot start /no/such/program"):
        await supervisor.ready("missing")


async def test_health_that_never_comes_ends_at_the_deadline(supervisor: Supervisor) -> None:
    patience = Patience(ready_seconds=0.5, drain_seconds=5)
    await supervisor.ensure(python("mute", "import time; time.sleep(60)", patience))

    with pytest.raises(errors.Unavailable, match=r"mute is not healthy after 0\.5 s: no"):
        await supervisor.ready("mute")

    assert supervisor.instance("mute").phase is Phase.STARTING


async def test_a_bad_status_is_no_health(supervisor: Supervisor) -> None:
    request = shop_program("shop", "--errors", "1")
    unhealthy = dataclasses.replace(request.health, path="/")
    patience = dataclasses.replace(request.patience, ready_seconds=1.0)
    await supervisor.ensure(dataclasses.replace(request, health=unhealthy, patience=patience))

    with pytest.raises(errors.Unavailable, match="answered with status 500"):
        await supervisor.ready("shop")


async def test_a_program_that_stops_answering_is_unhealthy_until_it_answers_again(
    supervisor: Supervisor,
) -> None:
    request = shop_program()
    quick = dataclasses.replace(request.health, timeout_seconds=0.1, failures=2)
    await supervisor.ensure(dataclasses.replace(request, health=quick))
    pid = (await supervisor.ready("shop")).pid
    assert pid is not None

    os.kill(pid, signal.SIGSTOP)
    await phase(supervisor, "shop", Phase.UNHEALTHY)
    reason = supervisor.instance("shop").reason
    os.kill(pid, signal.SIGCONT)
    await phase(supervisor, "shop", Phase.HEALTHY)

    assert reason == "no answer within 0.1 s"
    assert supervisor.instance("shop").pid == pid


async def test_a_program_that_hangs_is_restarted_when_that_is_requested(
    supervisor: Supervisor,
) -> None:
    request = shop_program()
    health = dataclasses.replace(request.health, timeout_seconds=0.1, failures=1, restart_after=2)
    patience = dataclasses.replace(request.patience, drain_seconds=0.1)
    await supervisor.ensure(dataclasses.replace(request, health=health, patience=patience))
    hanging = (await supervisor.ready("shop")).pid
    assert hanging is not None

    os.kill(hanging, signal.SIGSTOP)
    await phase(supervisor, "shop", Phase.BACKING_OFF)
    instance = await supervisor.ready("shop")

    assert instance.pid != hanging
    assert instance.restarts == 1


async def test_a_taken_port_is_refused_before_anything_starts(supervisor: Supervisor) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        with pytest.raises(errors.Conflict, match=f"port already taken: {port}"):
            await supervisor.ensure(shop_program("shop", port=port))

    assert supervisor.instances() == ()


async def test_a_stranger_on_the_port_is_not_taken_for_the_program(
    supervisor: Supervisor,
) -> None:
    async def stranger(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    patience = Patience(ready_seconds=1.0, drain_seconds=5)
    instance = await supervisor.ensure(python("mute", "import time; time.sleep(60)", patience))
    server = await asyncio.start_server(stranger, "127.0.0.1", instance.port)

    async with server:
        with pytest.raises(errors.Unavailable, match="another process holds it"):
            await supervisor.ready("mute")


async def test_a_request_in_flight_is_answered_before_the_program_ends(
    supervisor: Supervisor,
) -> None:
    await supervisor.ensure(shop_program("slow", "--delay-ms", "400"))
    instance = await supervisor.ready("slow")
    reader, writer = await asyncio.open_connection("127.0.0.1", instance.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")
    await writer.drain()
    await asyncio.sleep(0.1)  # not a wait for an event: the request must be under way

    await supervisor.stop("slow")

    assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
    writer.close()
    assert identities.identify(instance.pid or 0) is None
    assert supervisor.instances() == ()


async def test_a_program_that_will_not_end_is_killed_with_its_children(
    supervisor: Supervisor,
) -> None:
    text = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
print("deaf", flush=True)
time.sleep(60)
"""
    patience = Patience(drain_seconds=0.3)
    instance = await supervisor.ensure(python("deaf", text, patience))
    assert instance.pid is not None
    await until(lambda: supervisor.log("deaf").read_text().count("deaf") == 2)

    await supervisor.stop("deaf")

    assert identities.members(instance.pid) == []


async def test_logs_are_kept_within_bounds(supervisor: Supervisor) -> None:
    text = """
import time
for number in range(1000):
    print(f"line {number:05}", flush=True)
    time.sleep(0.001)
time.sleep(60)
"""
    await supervisor.ensure(python("talker", text))
    log = supervisor.log("talker")

    def written() -> str:
        texts = []
        for path in log.parent.glob("talker.log*"):
            # One that is being rotated has gone to another name since it was listed.
            with contextlib.suppress(FileNotFoundError):
                texts.append(path.read_text())
        return "".join(texts)

    await until(lambda: "line 00999" in written() and log.stat().st_size <= 2000)

    files = sorted(path.name for path in log.parent.glob("talker.log*"))
    assert files == ["talker.log", "talker.log.1", "talker.log.2"]
    assert len(written()) <= 3 * 2000
    assert log.stat().st_mode & 0o777 == 0o600


async def test_limits_hold_for_the_program_and_not_for_us(supervisor: Supervisor) -> None:
    text = "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE)[0], flush=True); [0] * 10**9"
    request = python("hungry", text)
    limits = Limits(memory_bytes=256 << 20, open_files=77, cpu_seconds=5)

    await supervisor.ensure(dataclasses.replace(request, limits=limits))
    with pytest.raises(errors.Unavailable, match="MemoryError"):
        await supervisor.ready("hungry")

    assert supervisor.log("hungry").read_text().startswith("77\n")


async def test_a_program_does_not_inherit_our_secrets(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLEAD_DATABASE_URL", "postgresql://secret")
    request = python("nosy", "import os; print(sorted(os.environ)); raise SystemExit(0)")

    await supervisor.ensure(dataclasses.replace(request, env={"COLOUR": "blue"}))
    await phase(supervisor, "nosy", Phase.CRASH_LOOPING)

    seen = supervisor.log("nosy").read_text()
    assert "'COLOUR'" in seen
    assert "'PORT'" in seen
    assert "FAIRLEAD_DATABASE_URL" not in seen


@pytest.mark.parametrize(
    "make",
    [
        lambda: Program("", ("true",)),
        lambda: Program("../up", ("true",)),
        lambda: Program("shop", ()),
        lambda: Program("shop", ("true", "a\0b")),
        lambda: Program("shop", ("true",), env={"A=B": "c"}),
        lambda: Program("shop", ("true",), port=70000),
    ],
)
def test_a_malformed_program_is_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(errors.Rejected):
        make()


async def test_a_kernel_that_is_too_old_is_said_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")

    with pytest.raises(errors.Unavailable, match="cannot hold a process"):
        async with Supervisor(tmp_path).running():
            pass


async def test_an_unknown_name_is_named(supervisor: Supervisor) -> None:
    with pytest.raises(errors.NotFound, match="no such program: nothing"):
        supervisor.instance("nothing")
    await supervisor.stop("nothing")
