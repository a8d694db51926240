"""A clock of its own for one process, which others may step: libfaketime, from Debian's packages.

clock = Clock(folder / "clock")
subprocess.Popen([*clock.command(), "worker"])
clock.step(60)      # a minute fast from now on, as after a wrong word from a time server
"""

from pathlib import Path

from fairlead import errors
from tools.servers import debian

HOW = "install the package libfaketime"
_LIBRARY = "usr/lib/*/faketime/libfaketimeMT.so.1"


class Clock:
    """Runs with the machine's until it is stepped; what measures spans is not touched."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.step(0)

    def step(self, seconds: int) -> None:
        """How far it is ahead of the machine's from now on; behind, where less than 0."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{seconds:+d}s\n", encoding="ascii")
        draft.replace(self._file)

    def command(self) -> list[str]:
        """What stands before a command that is to live by it."""
        return [
            "env",
            f"LD_PRELOAD={find()}",
            f"FAKETIME_TIMESTAMP_FILE={self._file}",
            "FAKETIME_CACHE_DURATION=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        ]


def find() -> Path:
    """The library; Unavailable, with a reason to show, where there is none to be had."""
    for root in (Path("/"), debian.unpacked(["libfaketime"], HOW)):
        for found in root.glob(_LIBRARY):
            return found
    raise errors.Unavailable("no libfaketime in its package", hint=HOW)
