"""What must outlive the control plane: each workload's desired state, and its programs by revision.

desired/shop.json           what shop is to be: slots, route, and the orders of both
programs/shop/4f1c….json    a program, kept as long as its rollout may ask for it
deployed/shop.json          the whole file that was deployed last
deployed/pay_shop.json      that of a shop in the project pay; so for all of these
status/shop.json            what the rollout last told of itself
id                          tells this folder's platform from that of any other
"""

import contextlib
import os
import secrets
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from fairlead import errors
from fairlead.areas.rollouts.domain.slots import Slot
from fairlead.areas.rollouts.domain.status import RolloutStatus
from fairlead.areas.rollouts.workloads import (
    ProgramWords,
    WorkloadWords,
    file_name,
    full_name,
    label,
)
from fairlead.clients.processes.records import replace
from fairlead.traffic.routes import Route

T = TypeVar("T")
_GRACE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Held:
    """What a slot is to hold."""

    revision: str
    replicas: int


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What one workload is to be; orders are remembered for slots that are empty, too."""

    name: str
    listen: int
    metrics_port: int | None = None
    slots: dict[Slot, Held] = field(default_factory=dict)
    orders: dict[Slot, int] = field(default_factory=dict)
    route: Route | None = None
    route_order: int = 0
    gone: bool = False
    """The rollout was deleted; the file stays, so that what comes late makes nothing."""


class DesiredStates:
    """The files of one state folder; each is replaced as a whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "desired"
        self._programs = folder / "programs"
        self._deployed = folder / "deployed"
        self._statuses = folder / "status"
        self._id = folder / "id"

    def all(self) -> Iterator[DesiredState]:
        for path in sorted(self._folder.glob("*.json")):
            yield _read(path, DesiredState)

    def write(self, desired: DesiredState) -> None:
        _write(self._folder / f"{file_name(desired.name)}.json", desired)

    def keep_program(self, name: str, revision: str, program: ProgramWords) -> None:
        _write(self._program(name, revision), program)

    def program(self, name: str, revision: str) -> ProgramWords:
        path = self._program(name, revision)
        if not path.exists():
            raise errors.Rejected(
                f"program of this revision of {name} is no longer kept: {revision}",
                hint="deploy the version again from its file",
            )
        return _read(path, ProgramWords)

    def forget_programs(self, name: str, used: Collection[str]) -> None:
        """Programs that no rollout asks for any more; a young one may be on its way to one."""
        for path in (self._programs / file_name(name)).glob("*.json"):
            old = time.time() - path.stat().st_mtime > _GRACE_SECONDS
            if old and path.stem not in used:
                path.unlink(missing_ok=True)

    def keep_words(self, words: WorkloadWords) -> None:
        _write(self._words(full_name(words)), words)

    def words(self, name: str) -> WorkloadWords | None:
        path = self._words(name)
        return _read(path, WorkloadWords) if path.exists() else None

    def status(self, name: str) -> RolloutStatus | None:
        path = self._status(name)
        return _read(path, RolloutStatus) if path.exists() else None

    def keep_status(self, name: str, status: RolloutStatus) -> None:
        _write(self._status(name), status)

    def id(self) -> str:
        """Made at the first call and kept: by it, rollouts name the machine they belong to."""
        if not self._id.exists():
            fresh = self._id.with_name(f"id.{secrets.token_hex(4)}")
            _write(fresh, secrets.token_hex(6))
            # Linked and not moved: of two processes that begin together one id stays.
            with contextlib.suppress(FileExistsError):
                os.link(fresh, self._id)
            fresh.unlink()
        return _read(self._id, str)

    def forget(self, name: str) -> None:
        """What was deployed last, and what its rollout told."""
        for path in (self._status(name), self._words(name)):
            path.unlink(missing_ok=True)

    # Names are checked once more where files are made: one with a slash would leave the folder.
    def _program(self, name: str, revision: str) -> Path:
        return self._programs / file_name(name) / f"{label(revision)}.json"

    def _status(self, name: str) -> Path:
        return self._statuses / f"{file_name(name)}.json"

    def _words(self, name: str) -> Path:
        return self._deployed / f"{file_name(name)}.json"


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace(path, msgspec.json.encode(content))


def _read(path: Path, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(path.read_bytes(), type=shape)
    except (msgspec.MsgspecError, errors.Rejected) as error:
        raise errors.Corrupt(
            f"cannot read a record of the local platform: {path}",
            hint="move the file away, then deploy the workload again",
        ) from error
