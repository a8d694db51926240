"""What must outlive the control plane: one small file per program, replaced as a whole.

A record says what is wanted (the program) and who runs it (process id with start time). It
holds the program's environment, so only its owner may read it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fairlead import errors
from fairlead.clients.processes.identity import Identity
from fairlead.clients.processes.program import Program

_ENDING = ".program.json"


@dataclass(frozen=True, slots=True)
class Record:
    """A desired program and, when it was started, the process that runs it."""

    program: Program
    identity: Identity | None
    port: int
    restarts: int


class Folder:
    """The state folder of one supervisor."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()

    @property
    def owner(self) -> str:
        """What processes of this folder are marked with; survives the folder's loss."""
        return str(self.path)

    def log(self, name: str) -> Path:
        return self.path / f"{name}.log"

    def make(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(self, record: Record) -> None:
        replace(self._file(record.program.name), msgspec.json.encode(record))

    def forget(self, name: str) -> None:
        self._file(name).unlink(missing_ok=True)

    def forget_all(self) -> None:
        """Also what cannot be read."""
        for path in self.path.glob(f"*{_ENDING}"):
            path.unlink()

    def records(self) -> list[Record]:
        return [self._read(path) for path in sorted(self.path.glob(f"*{_ENDING}"))]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Two control planes on one folder would start everything twice."""
        self.make()
        with (self.path / "lock").open("ab") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise errors.Conflict(
                    f"processes are supervised by another control plane: {self.path}",
                    hint="stop that one, or use another state folder",
                ) from error
            yield

    def _file(self, name: str) -> Path:
        return self.path / f"{name}{_ENDING}"

    def _read(self, path: Path) -> Record:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Record)
        except msgspec.DecodeError as error:
            raise errors.Corrupt(
                f"cannot read the record of a process: {path}",
                hint="stop its process by hand if there is one, then remove the file",
            ) from error


def replace(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one, never a part."""
    draft = path.with_name(f".{path.name}.new")
    with open(draft, "wb", opener=_private) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
