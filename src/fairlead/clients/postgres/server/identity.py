"""Who runs a server, and where it may live.

Some servers refuse root. As root we start them under the `nobody` that every Linux has:
nothing is added to the machine, and no mode of an existing folder is changed. Any other
user runs them as himself.
"""

import os
import pwd
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead.errors import Unavailable

RUN_TIMEOUT_SECONDS = 120.0
# Nothing of the caller's environment: PGPORT, LD_LIBRARY_PATH or LANG would change the server.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}


@dataclass(frozen=True, slots=True)
class Identity:
    """An unprivileged user and group, by number."""

    uid: int
    gid: int


def unprivileged_identity() -> Identity | None:
    """The id to run servers under; None where we are unprivileged ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        # An id without a passwd entry would be even less, but initdb looks its user up.
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise Unavailable(
            "no unprivileged user to run a server under: nobody",
            hint="run it as an ordinary user",
        ) from error
    return Identity(nobody.pw_uid, nobody.pw_gid)


def run_as(
    identity: Identity | None, command: Sequence[str | Path], cwd: Path = Path("/")
) -> subprocess.CompletedProcess[str]:
    """Run to the end under that id. A program it may not reach raises PermissionError."""
    return subprocess.run(  # noqa: S603 - our own commands
        list(command),
        user=identity.uid if identity else None,
        group=identity.gid if identity else None,
        extra_groups=[] if identity else None,
        cwd=cwd,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_SECONDS,
        check=False,
    )


def may_write(identity: Identity | None, folder: Path) -> bool:
    """Asked of the kernel under that id: modes of parents, lists and mounts all count."""
    if identity is None:
        return os.access(folder, os.W_OK | os.X_OK)
    return run_as(identity, ["test", "-w", folder, "-a", "-x", folder]).returncode == 0


def temporary_places() -> tuple[Path, ...]:
    """Where temporary folders may be made, best first.

    /dev/shm is not among them: fsync costs nothing there, and every figure would flatter us.
    """
    usual = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - only mkdtemp is used in them
    return tuple(dict.fromkeys(Path(place).resolve() for place in usual))
