"""What must outlive the control plane: each workload's berth, and its programs by revision.

berths/shop.json            what shop is to be: slots, route, and the orders of both
programs/shop/4f1c….json    a program, kept as long as its rollout may ask for it
status/shop.json            what the rollout last told of itself
"""

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fairlead import errors
from fairlead.adapters.processes.records import replace
from fairlead.domain.rollouts.messages import Slot
from fairlead.domain.traffic.routes import Route
from fairlead.intents.workloads import ProgramWords

T = TypeVar("T")
_GRACE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Held:
    """What a slot is to hold."""

    revision: str
    replicas: int


@dataclass(frozen=True, slots=True)
class Berth:
    """What one workload is to be; orders are remembered for slots that are empty, too."""

    name: str
    listen: int
    metrics_port: int | None = None
    slots: dict[Slot, Held] = field(default_factory=dict)
    orders: dict[Slot, int] = field(default_factory=dict)
    route: Route | None = None
    route_order: int = 0
    gone: bool = False
    """The rollout was deleted; the berth stays, so that what comes late makes nothing."""


@dataclass(frozen=True, slots=True)
class Status:
    """What a rollout told of itself, and the serial by which old news is known."""

    serial: int
    status: dict[str, Any]


class Ledger:
    """The files of one state folder; each is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._berths = folder / "berths"
        self._programs = folder / "programs"
        self._statuses = folder / "status"

    def berths(self) -> Iterator[Berth]:
        for path in sorted(self._berths.glob("*.json")):
            yield _read(path, Berth)

    def write(self, berth: Berth) -> None:
        _write(self._berths / f"{berth.name}.json", berth)

    def keep_program(self, name: str, revision: str, program: ProgramWords) -> None:
        _write(self._programs / name / f"{revision}.json", program)

    def program(self, name: str, revision: str) -> ProgramWords:
        path = self._programs / name / f"{revision}.json"
        if not path.exists():
            raise errors.Rejected(
                f"no program is kept for this revision of {name}: {revision}",
                hint="deploy the version again from its file",
            )
        return _read(path, ProgramWords)

    def forget_programs(self, name: str, used: Collection[str]) -> None:
        """Programs that no rollout asks for any more; a young one may be on its way to one."""
        for path in (self._programs / name).glob("*.json"):
            old = time.time() - path.stat().st_mtime > _GRACE_SECONDS
            if old and path.stem not in used:
                path.unlink(missing_ok=True)

    def status(self, name: str) -> Status | None:
        path = self._statuses / f"{name}.json"
        return _read(path, Status) if path.exists() else None

    def keep_status(self, name: str, status: Status) -> None:
        _write(self._statuses / f"{name}.json", status)

    def forget_status(self, name: str) -> None:
        (self._statuses / f"{name}.json").unlink(missing_ok=True)


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace(path, msgspec.json.encode(content))


def _read(path: Path, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except (msgspec.MsgspecError, errors.Rejected) as error:
        raise errors.Corrupt(
            f"a record of the local platform cannot be read: {path}",
            hint="move the file away, then deploy the workload again",
        ) from error
