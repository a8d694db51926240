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

DEMO = [sys.executable, "-m", "fairlead", "demo"]
SHORT = [*DEMO, "--exit", "--trips", "80", "--port", "0"]
WAIT = 120


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo makes its folder, so that the test sees whether it is gone."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    for variable in [name for name in os.environ if name.startswith("FAIRLEAD_")]:
        monkeypatch.delenv(variable)
    return folder


@pytest.mark.slow
def test_the_story_goes_as_told_and_leaves_nothing_behind(temporary: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--exit", "--port", "0"], capture_output=True, text=True, timeout=WAIT, check=False
    )

    assert done.returncode == 0, done.stderr
    claims = [line for line in done.stdout.splitlines() if line.startswith("  ok  ")]
    assert len(claims) == 7
    assert "all 600 trips came home" in claims[0]
    assert re.search(r"killed with \d+ trips home and [1-9]\d* legs on the road", claims[1])
    assert re.search(r"asked \d+ times for 6000 legs and drove each once", claims[4])
    assert re.search(r"worker (\d+) killed \(SIGKILL\)", done.stderr)
    assert "\x1b" not in done.stdout + done.stderr
    assert list(temporary.iterdir()) == []
    assert not running(done.stderr)


def test_it_works_twice_in_one_folder(temporary: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"

    for number in (1, 2):
        done = subprocess.run(
            [*SHORT, "--keep", str(kept)], capture_output=True, text=True, timeout=WAIT, check=False
        )
        assert done.returncode == 0, done.stderr
        assert f"get depot/demo{number}" in done.stdout

    look = [sys.executable, "-m", "fairlead", "--state-dir", str(kept), "get", "depot"]
    shown = subprocess.run(look, capture_output=True, text=True, timeout=WAIT, check=True)
    assert len(re.findall(r"depot/demo\d +Done", shown.stdout)) == 2


def test_a_terminal_gets_a_moving_line(temporary: Path) -> None:
    code, said = on_a_terminal(SHORT)

    assert code == 0, said
    assert "80/80" in said
    assert "\x1b[2K" in said, "the line is drawn again in its place"
    assert "killed (SIGKILL)" in said
    assert list(temporary.iterdir()) == []


def test_the_page_takes_another_port_and_stays_until_ctrl_c(temporary: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [*DEMO, "--trips", "20", "--port", str(port)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as demo:
            said = read_until(demo, b"the page is at")
            (url,) = re.findall(r"the page is at (http://127\.0\.0\.1:\d+);", said)
            answered = httpx.get(f"{url}/api/v1/streams/depot/demo1", timeout=30).json()
            demo.send_signal(signal.SIGINT)
            assert demo.stderr is not None
            rest = demo.stderr.read().decode()
            code = demo.wait(WAIT)

    assert f"the port is taken: {port}; taking another" in said
    assert not url.endswith(f":{port}")
    assert answered["state"] == "Done"
    assert (code, rest.strip()) == (0, "ended")
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_cleans_up(temporary: Path, number: signal.Signals) -> None:
    with subprocess.Popen([*DEMO, "--exit", "--port", "0"], stderr=subprocess.PIPE) as demo:
        assert demo.stderr is not None
        said = read_until(demo, b"is at work")
        demo.send_signal(number)
        rest = demo.stderr.read().decode()
        code = demo.wait(WAIT)

    assert code == 128 + number
    assert "Traceback" not in rest
    assert list(temporary.iterdir()) == []
    assert not running(said)


def test_a_demo_that_is_killed_takes_its_worker_along(temporary: Path) -> None:
    with subprocess.Popen([*DEMO, "--exit", "--port", "0"], stderr=subprocess.PIPE) as demo:
        said = read_until(demo, b"is at work")
        demo.kill()

    wait_for(lambda: not running(said))


def test_a_worker_that_dies_by_itself_is_not_the_story(temporary: Path) -> None:
    with subprocess.Popen(
        [*DEMO, "--exit", "--port", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as demo:
        assert demo.stderr is not None
        (worker,) = workers(read_until(demo, b"is at work"))
        os.kill(worker, signal.SIGTERM)
        rest = demo.stderr.read().decode()
        code = demo.wait(WAIT)

    assert code == 9
    assert f"error: the story did not go as told: worker {worker} ended by itself" in rest
    assert "\nhint: " in rest
    assert list(temporary.iterdir()) == []


def on_a_terminal(command: list[str]) -> tuple[int, str]:
    """Run it with a pseudo-terminal as all three streams; its code and all it drew."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as demo:
        os.close(theirs)
        said = b"".join(drawn(ours))
        code = demo.wait(WAIT)
    os.close(ours)
    return code, said.decode()


def drawn(terminal: int) -> Iterator[bytes]:
    # Linux reports the end of a terminal's last writer as an error.
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 65536):
            yield data


def read_until(process: "subprocess.Popen[bytes]", words: bytes) -> str:
    assert process.stderr is not None
    said = b""
    for line in process.stderr:
        said += line
        if words in line:
            return said.decode()
    raise AssertionError(said.decode())


def workers(said: str) -> list[int]:
    return [int(pid) for pid in re.findall(r"worker (\d+) (?:is at work|took)", said)]


def running(said: str) -> list[int]:
    """Workers that the demo named and that are still there."""
    return [pid for pid in workers(said) if Path(f"/proc/{pid}").exists()]


def wait_for(true: object) -> None:
    assert callable(true)
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
