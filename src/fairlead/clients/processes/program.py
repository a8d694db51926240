"""What a user wants to run: one program, how to tell that it is well, and how patient to be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from fairlead import errors

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Health:
    """How a program shows that it can serve; without a path an open port is enough."""

    path: str | None = None
    every_seconds: float = 1.0
    timeout_seconds: float = 1.0
    # A single slow answer of a busy program is no reason to call it unhealthy.
    failures: int = 3
    # So many in a row end and restart a program that hangs; None only reports it.
    restart_after: int | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What the kernel lets one process of the program use; None leaves it as it is."""

    memory_bytes: int | None = None
    open_files: int | None = None
    cpu_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take before they count as failed."""

    ready_seconds: float = 30.0
    drain_seconds: float = 10.0
    backoff_seconds: float = 0.2
    longest_backoff_seconds: float = 30.0
    # A program that stayed up for this long starts over with the shortest wait.
    steady_seconds: float = 10.0
    # So many ends in a row, none of them steady, are a crash loop.
    loop_after: int = 3


@dataclass(frozen=True, slots=True)
class Program:
    """One version of a program; it learns its port from the variable PORT."""

    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    # None: any free port, kept over restarts as long as nobody else took it.
    port: int | None = None
    health: Health = field(default_factory=Health)
    limits: Limits = field(default_factory=Limits)
    patience: Patience = field(default_factory=Patience)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise errors.Rejected(
                f"malformed name of a program: {self.name[:80]!r}",
                hint="use up to 100 lower-case letters, digits, dots, dashes and underscores",
            )
        if not self.command or not self.command[0]:
            raise errors.Rejected(
                f"program without a command: {self.name}",
                hint="give the command as a list of words",
            )
        words = (*self.command, *self.env, *self.env.values(), self.cwd or "")
        if any("\0" in word for word in words) or any("=" in key or not key for key in self.env):
            raise errors.Rejected(
                f"command or environment cannot be given to a process: {self.name}",
                hint="remove NUL characters, and '=' from names of variables",
            )
        if self.port is not None and not 0 < self.port <= _HIGHEST_PORT:
            raise errors.Rejected(f"no such port: {self.port}", hint="use 1 to 65535")
