"""`fairlead demo` as a user runs it: to its end, on a terminal and without, and cut short."""

import contextlib
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fairlead.clients.processes import identity

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
DEMO = [sys.executable, "-m", "fairlead", "demo", "--pause", "3", "--shop-port", "0"]
SHORT = [*DEMO, "--exit", "--port", "0"]
WAIT = 180


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its folder, so that the test sees whether it is gone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    for variable in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
        monkeypatch.delenv(variable)
    return folder


def test_the_story_goes_as_told_twice_in_a_row_and_leaves_nothing_behind(temporary: Path) -> None:
    done = subprocess.run(SHORT, capture_output=True, text=True, timeout=WAIT, check=False)
    left = left_of(temporary)
    code, drawn = on_a_terminal(SHORT)

    assert done.returncode == 0, done.stdout + done.stderr
    claims = [line for line in done.stdout.splitlines() if line.startswith("  ok  ")]
    assert len(claims) == 5
    assert "v2: class BEFORE: its migration needs no downtime" in done.stderr
    assert "BEFORE    ALTER TABLE goods ADD COLUMN stock" in done.stderr
    assert "adds column goods.stock" in done.stderr
    order = [done.stderr.index(f"v2: {each}") for each in ("evaluating", "class", "database")]
    assert order == sorted(order)
    assert done.stderr.index("v2: database migrated") < done.stderr.index("v2 has weight 10 %")
    assert re.search(
        r"failed at 10 %: success: .* requests failed: .* %, at least 99 % required", done.stdout
    )
    assert "fairlead deploy FILE" in done.stdout
    told = re.findall(r"^\d:\d\d  (v\d .*)$", done.stderr, re.MULTILINE)
    weights = [line for line in told if " has weight " in line]
    assert [re.findall(r"\d+", line) for line in weights] == [
        ["2", "10"], ["2", "50"], ["2", "100"], ["3", "10"],
    ]  # fmt: skip
    assert re.search(r"v2 50 %, [\d,]+ requests, 0 failed, success 100\.0 %", done.stderr)
    assert "\x1b" not in done.stdout + done.stderr
    assert code == 0, drawn
    assert "\x1b[2K" in drawn, "the picture is drawn again in its place"
    assert "step 2 of 3, weight 50 %" in drawn
    assert "success per second" in drawn
    assert "version 3 was rolled back automatically at 10 %" in drawn
    assert left == left_of(temporary) == []


def test_taken_ports_are_replaced_and_the_page_stays_until_ctrl_c(temporary: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as page,
        socket.create_server(("127.0.0.1", 0)) as shop,
    ):
        taken = [each.getsockname()[1] for each in (page, shop)]
        ports = ["--port", str(taken[0]), "--shop-port", str(taken[1])]
        with subprocess.Popen(
            [*DEMO, *ports], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as demo:
            said = read_until(demo, b"the page is at")
            (url,) = re.findall(r"the page is at (http://127\.0\.0\.1:\d+);", said)
            answered = httpx.get(f"{url}/api/v1/rollouts/shop", timeout=30).json()
            stream = f"{url}/api/v1/streams/deployment/demo/shop/v2"
            deployment = httpx.get(stream, timeout=30).json()
            demo.send_signal(signal.SIGINT)
            assert demo.stderr is not None
            rest = demo.stderr.read().decode()
            code = demo.wait(WAIT)

    assert f"the port is taken: {taken[0]}; the page takes " in said
    assert f"the port is taken: {taken[1]}; the shop takes " in said
    assert answered["rollout"]["phase"] == "RolledBack"
    assert (deployment["data"]["status"], deployment["data"]["impact"]) == ("DONE", "BEFORE")
    assert any("goods.stock" in reason for reason in deployment["data"]["reasons"])
    assert (code, rest.strip()) == (0, "ended")
    assert left_of(temporary) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_cleans_up(temporary: Path, number: signal.Signals) -> None:
    with subprocess.Popen(SHORT, stderr=subprocess.PIPE) as demo:
        assert demo.stderr is not None
        read_until(demo, b"v2 has weight 10 %")
        # Envoy, version 1 and version 2.
        assert len(processes_of(temporary)) == 3
        (database,) = databases_of(demo.pid)
        demo.send_signal(number)
        rest = demo.stderr.read().decode()
        code = demo.wait(WAIT)

    assert code == 128 + number
    assert not Path(f"/proc/{database}").exists(), "its PostgreSQL ends with it"
    assert "Traceback" not in rest
    assert left_of(temporary) == []


def left_of(temporary: Path) -> list[object]:
    """Files and processes that should not be there any more."""
    return [*temporary.iterdir(), *processes_of(temporary)]


def processes_of(temporary: Path) -> list[int]:
    """Living processes that a demo of this folder started, by the mark they carry."""
    start = f"{identity.MARK}={temporary}/".encode()
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and start in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def databases_of(demo: int) -> list[int]:
    """The PostgreSQL servers that this process started, by their parent."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if not folder.name.isdigit():
                continue
            parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) == demo and b"postgres" in (folder / "cmdline").read_bytes():
                found.append(int(folder.name))
    return found


def on_a_terminal(command: list[str]) -> tuple[int, str]:
    """Run it with a pseudo-terminal as all three streams; its code and all it drew."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as demo:
        os.close(theirs)
        said = b"".join(lines_of(ours))
        code = demo.wait(WAIT)
    os.close(ours)
    return code, said.decode()


def lines_of(terminal: int) -> Iterator[bytes]:
    # Linux reports the end of a terminal's last writer as an error.
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65536):
            yield data


def read_until(process: "subprocess.Popen[bytes]", words: bytes) -> str:
    assert process.stderr is not None
    said, deadline = b"", time.monotonic() + WAIT
    for line in process.stderr:
        said += line
        if words in line:
            return said.decode()
        assert time.monotonic() < deadline, said.decode()
    raise AssertionError(said.decode())
