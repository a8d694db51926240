"""Patroni from the package index, in a folder of its own: pinned, hashed, and made once.

Not in .venv: it is a program beside ours, and most who test Fairlead do without.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from fairlead import errors
from tools import setup

LOCK = setup.ROOT / "requirements" / "ha.txt"
HOW = "run `make ha`"
_SECONDS = 600.0


def find() -> Path:
    """The folder to put on PYTHONPATH; Unavailable, with a reason to show, where it is not made."""
    folder = _folder()
    if not folder.is_dir():
        raise errors.Unavailable("no Patroni here", hint=HOW)
    return folder


def install() -> Path:
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
    return folder


def _folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = Path(os.environ.get("FAIRLEAD_CACHE") or home / "fairlead") / "patroni"
    seen = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return root / seen


def _fetch(folder: Path) -> None:
    uv = setup.find_uv()
    if uv is None:
        raise errors.Unavailable("no uv to install Patroni with", hint="run `make setup-test`")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        target = Path(scratch) / "site"
        done = subprocess.run(
            [
                *(uv, "pip", "install", "--quiet", "--python", sys.executable),
                *("--target", str(target), "--require-hashes", "-r", str(LOCK)),
                # Two of the packages have no wheel; what builds them is pinned there as well.
                *("--build-constraints", str(LOCK)),
            ],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
        if done.returncode:
            raise errors.Unavailable(
                f"cannot install Patroni: {done.stderr.strip()[-1000:]}",
                hint="the package index must answer",
            )
        target.rename(folder)
