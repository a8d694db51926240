"""How long a person waits: `fairlead --help`, and `fairlead up` until it is ready."""

import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench import harness
from fairlead.clients.postgres.server.running import free_port

_COMMAND = Path(sys.executable).parent / "fairlead"
_LONGEST_SECONDS = 30.0
_POLL_SECONDS = 0.01


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("start", {"load_average_before": harness.load_average()})
    contestants = {"help": _help, "up": _up} if _COMMAND.exists() else {}
    if not contestants:
        harness.say(f"no such command, so nothing is timed: {_COMMAND.name}")
    rounds = harness.Rounds(contestants, effort.pick(7, 1))
    result.add("help_seconds", rounds.of("help", "seconds"))
    result.add("up_ready_seconds", rounds.of("up", "seconds"))
    result.measurements["load_average_after"] = harness.load_average()
    return result


def _help() -> Mapping[str, float]:
    began = time.perf_counter()
    done = subprocess.run([_COMMAND, "--help"], capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        raise harness.Failed(f"fairlead --help: {done.stderr.strip()[-300:]}")
    return {"seconds": seconds}


def _up() -> Mapping[str, float]:
    """From the command to the first good answer of /readyz, on an empty state folder."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder:
        environment = {
            **{name: value for name, value in os.environ.items() if "FAIRLEAD" not in name},
            "FAIRLEAD_STATE_DIR": folder,
            "FAIRLEAD_LISTEN": f"127.0.0.1:{port}",
        }
        began = time.perf_counter()
        process = subprocess.Popen(
            [_COMMAND, "up"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            _await_ready(process, port)
            return {"seconds": time.perf_counter() - began}
        finally:
            process.terminate()
            process.communicate(timeout=_LONGEST_SECONDS)


def _await_ready(process: "subprocess.Popen[str]", port: int) -> None:
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            assert process.stderr is not None
            raise harness.Failed(f"fairlead up: {process.stderr.read().strip()[-300:]}")
        if _answers(port):
            return
        time.sleep(_POLL_SECONDS)
    raise harness.Failed(f"fairlead up was not ready after {_LONGEST_SECONDS:.0f} s")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


BENCHMARK = harness.Benchmark("start", "fairlead --help, and fairlead up until it is ready", run)
