"""A program with everything it starts, as one machine: it can lose power, freeze and thaw.

    node = Sandbox(["/usr/bin/patroni", "node.yml"], log)
    node.pause()     # every process of it, until resume()
    node.kill()      # every process of it at once, as when the power goes

Linux's process namespace holds it together: when its first process dies, the kernel kills all
others, and that one dies with us. A user namespace makes root appear as `nobody` inside, for
servers that refuse root, while files stay reachable as they are. Both come from util-linux.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairlead import errors
from fairlead.clients.postgres.server.identity import ENVIRONMENT, run_as, unprivileged_identity
from tools.cluster.process import Process

HOW = "allow user namespaces (sysctl user.max_user_namespaces), and install util-linux"
_GONE_SECONDS = 10.0
_POLL_SECONDS = 0.01


class Sandbox:
    """One running machine of that kind."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        settings = [
            f"{name}={value}" for name, value in {**ENVIRONMENT, **(environment or {})}.items()
        ]
        self._process = Process([*_enclosing(), "env", "-i", *settings, *command], log)
        self._space = ""

    @property
    def process(self) -> Process:
        """What stands outside for the whole; its end is the end of all."""
        return self._process

    def pids(self) -> list[int]:
        """Every process inside, by its number outside."""
        if not self._space:
            # Until `unshare` has done its work, that is our own, where all others live as well.
            found = _space_of(self._process.pid, "pid_for_children")
            self._space = "" if found == _space_of(os.getpid()) else found
        if not self._space:
            return []
        there = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
        return [pid for pid in there if _space_of(pid) == self._space]

    def pause(self) -> None:
        """Until each is stopped: one that was about to fork has a child that runs on."""
        while running := [pid for pid in self.pids() if state(pid) not in "TZ"]:
            for pid in running:
                _signal(pid, signal.SIGSTOP)

    def resume(self) -> None:
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def kill(self) -> None:
        self.pids()  # while there is still somebody to ask which namespace it is
        self._process.kill()
        deadline = time.monotonic() + _GONE_SECONDS
        while self.pids():
            if time.monotonic() > deadline:
                raise errors.Unavailable(f"processes do not end: {self.pids()}", hint="see ps")
            time.sleep(_POLL_SECONDS)


def check() -> None:
    """Unavailable, with a reason to show, where there can be no sandbox."""
    if shutil.which("unshare") is None:
        raise errors.Unavailable("no program to make a sandbox with: unshare", hint=HOW)
    tried = run_as(None, [*_enclosing(), "true"])
    if tried.returncode:
        raise errors.Unavailable(f"no sandbox here: {tried.stderr.strip()}", hint=HOW)


def _enclosing() -> list[str]:
    identity = unprivileged_identity()
    uid, gid = (identity.uid, identity.gid) if identity else (os.getuid(), os.getgid())
    return [
        *("unshare", "--user", f"--map-user={uid}", f"--map-group={gid}"),
        *("--pid", "--fork", "--kill-child", "--mount-proc"),
    ]


def _space_of(pid: int, kind: str = "pid") -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/{kind}").readlink())
    except OSError:
        return ""


def state(pid: int) -> str:
    """One letter, as ps shows it; Z also for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0]
    except OSError:
        return "Z"


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
