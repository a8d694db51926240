"""A server as a child process that never outlives us, with its talk kept in a file."""

import ctypes
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fairlead import errors

_PR_SET_PDEATHSIG = 1
_LAST_CHARACTERS = 2000
# An API server with open watches takes a minute to end by itself; no cluster gives it that.
_STOP_SECONDS = 3.0
_POLL_SECONDS = 0.02
# Loaded here, because between fork and exec nothing should be imported or allocated.
_LIBC = ctypes.CDLL(None, use_errno=True)


class Process:
    """One running program; stopped by its id."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        if threading.current_thread() is not threading.main_thread():
            # Linux sends the signal when the thread that started the child ends, not the process.
            raise errors.Rejected(
                f"a server must be started from the main thread: {command[0]}",
                hint="start it there, wait for it in the side thread",
            )
        self.name = Path(command[0]).name
        self.log = log
        with log.open("ab") as talk:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=talk,
                stderr=subprocess.STDOUT,
                # Ctrl-C reaches only us, and we stop servers in order.
                start_new_session=True,
                preexec_fn=die_with(os.getpid()),  # noqa: PLW1509  only a system call, no threads
            )

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.alive:
                raise errors.Unavailable(
                    f"{self.name} ended with code {self._child.returncode}: {self.last_words()}",
                    hint=f"its whole output is in {self.log}",
                )
            if time.monotonic() > deadline:
                raise errors.Unavailable(
                    f"{self.name} not ready after {seconds:.0f} s: {self.last_words()}",
                    hint="the machine may be overloaded; try again",
                )
            time.sleep(_POLL_SECONDS)

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-_LAST_CHARACTERS:].strip()

    def stop(self) -> None:
        """Asks first, so that a server can finish what it writes."""
        self._child.terminate()
        try:
            self._child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def die_with(parent: int) -> Callable[[], None]:
    """For `preexec_fn`: the child ends when the parent does, however that ends."""

    def arrange() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the call above: then no signal will ever come.
        if os.getppid() != parent:
            os._exit(1)

    return arrange
