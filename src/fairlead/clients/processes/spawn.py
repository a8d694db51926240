"""Start a process that outlives us, and hold it so that its id cannot be mistaken.

A pidfd names one process for good: a signal through it never reaches a stranger that got
the same id later, and it tells the end of processes that are not our children as well,
which those of an earlier control plane are not.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairlead import errors
from fairlead.clients.processes import identity as identities
from fairlead.clients.processes.identity import Identity
from fairlead.clients.processes.program import Program

_LAUNCH = str(Path(__file__).with_name("launch.py"))
# Not our whole environment: it holds what only the control plane should know.
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR")
_POLL_SECONDS = 0.02
_KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class End:
    """How a process ended; an adopted one does not leave us its code."""

    code: int | None = None
    signal_number: int | None = None

    def __str__(self) -> str:
        if self.signal_number is not None:
            return f"killed by {signal.Signals(self.signal_number).name}"
        return "ended" if self.code is None else f"ended with code {self.code}"


def spawn(program: Program, port: int, log: Path, owner: str) -> "Handle":
    """Start it in a session of its own; the log file is its standard output and error."""
    plan = {"cwd": program.cwd, "limits": dataclasses.asdict(program.limits)}
    command = [sys.executable, "-I", "-S", _LAUNCH, json.dumps(plan), *program.command]
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawn(
        sys.executable,
        command,
        environment(program, port, owner),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return Handle(identities.of_child(pid), os.pidfd_open(pid))


def environment(program: Program, port: int, owner: str) -> dict[str, str]:
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    ours = {"PORT": str(port), identities.MARK: identities.mark(owner, program.name)}
    return {**passed, **program.env, **ours}


class Handle:
    """One process, held until `close`."""

    def __init__(self, identity: Identity, descriptor: int) -> None:
        self.identity = identity
        self._descriptor = descriptor
        self._gone = asyncio.Event()
        asyncio.get_running_loop().add_reader(descriptor, self._notice)

    @classmethod
    def hold(cls, identity: Identity) -> Self | None:
        """None when it is gone, or when its id belongs to another by now."""
        try:
            descriptor = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            return None
        # After the open, not before: else the id could change hands in between.
        if not identities.lives(identity):
            os.close(descriptor)
            return None
        return cls(identity, descriptor)

    async def ended(self) -> End:
        await self._gone.wait()
        return self._collect()

    async def drain(self, seconds: float) -> None:
        """Ask the whole group to end, wait, then end what is left of it."""
        self._signal_group(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._gone.wait()
                self._collect()
                while identities.members(self.identity.pid):  # noqa: ASYNC110 - no event tells it
                    await asyncio.sleep(_POLL_SECONDS)
        await self.kill()

    async def kill(self) -> None:
        """End what is left of the group at once."""
        deadline = time.monotonic() + _KILL_SECONDS
        while identities.members(self.identity.pid):
            self._signal_group(signal.SIGKILL)
            if time.monotonic() > deadline:
                raise errors.Unavailable(
                    f"process does not end when killed: {self.identity.pid}",
                    hint="it hangs in the kernel, often on a disk or a network file system",
                )
            await asyncio.sleep(_POLL_SECONDS)
        self._collect()

    async def drain_alone(self, seconds: float) -> None:
        """The same for this one process, whatever group it is in."""
        self._signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(seconds):
                await self._gone.wait()
        except TimeoutError:
            self._signal(signal.SIGKILL)
            await self._gone.wait()
        self._collect()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, number)

    def _signal_group(self, number: signal.Signals) -> None:
        # As long as a member lives, the kernel gives the group's number to nobody else.
        if identities.members(self.identity.pid):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.identity.pid, number)

    def _notice(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        self._gone.set()

    def _collect(self) -> End:
        try:
            found = os.waitid(os.P_PIDFD, self._descriptor, os.WEXITED | os.WNOHANG)
        except ChildProcessError:
            return End()
        if found is None:
            return End()
        if found.si_code == os.CLD_EXITED:
            return End(code=found.si_status)
        return End(signal_number=found.si_status)
