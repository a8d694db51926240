"""Who a process is: its id alone is reused by the kernel, with its start time it is not.

All of it is read from /proc. A process that has ended and only waits to be collected
counts as gone.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "SUPERVISED_BY_FAIRLEAD"
_PROC = Path("/proc")
_GONE = frozenset("ZXx")
_LISTENING = "0A"


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, told apart from any later one with the same id."""

    pid: int
    # Clock ticks after boot; so the boot belongs to it.
    started: int
    boot: str


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    group: int
    session: int
    started: int


def identify(pid: int) -> Identity | None:
    """The living process with this id, if there is one."""
    stat = _stat(pid)
    if stat is None or stat.state in _GONE:
        return None
    return Identity(pid, stat.started, _boot())


def of_child(pid: int) -> Identity:
    """A child of ours that nobody has collected; it may have ended already."""
    stat = _stat(pid)
    assert stat is not None, "the kernel keeps a child until it is collected"
    return Identity(pid, stat.started, _boot())


def lives(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def members(group: int) -> list[int]:
    """Living processes of a process group."""
    return [pid for pid, stat in _all() if stat.group == group and stat.state not in _GONE]


def marked(owner: str) -> Iterator[tuple[Identity, str, bool]]:
    """Living processes started for this owner: who, for which program, and whether it leads."""
    for pid, stat in _all():
        found = _mark(pid) if stat.state not in _GONE else ""
        # From the right: a folder's path may hold a colon, a program's name cannot.
        whose, _, name = found.rpartition(":")
        if whose == owner:
            yield Identity(pid, stat.started, _boot()), name, stat.session == pid


def mark(owner: str, name: str) -> str:
    return f"{owner}:{name}"


def holds_port(group: int, port: int) -> bool:
    """Whether a process of this group is the one that listens on this loopback port."""
    wanted = {f"socket:[{inode}]" for inode in _listeners(port)}
    return any(held in wanted for pid in members(group) for held in _open_files(pid))


def _all() -> Iterator[tuple[int, _Stat]]:
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            stat = _stat(int(folder.name))
            if stat is not None:
                yield int(folder.name), stat


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything, brackets too.
    fields = text.rpartition(")")[2].split()
    return _Stat(fields[0], int(fields[2]), int(fields[3]), int(fields[19]))


def _mark(pid: int) -> str:
    try:
        pairs = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    start = f"{MARK}=".encode()
    return next((os.fsdecode(pair[len(start) :]) for pair in pairs if pair.startswith(start)), "")


def _boot() -> str:
    return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _listeners(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in (_PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENING and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _open_files(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for entry in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                yield str(entry.readlink())
