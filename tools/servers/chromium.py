"""A real Chromium for the tests of the pages: found in PATH, or installed from Debian's packages.

Run as `python -m tools.servers.chromium` (make browser): says where it is, and installs it where it
is missing. That takes root, because a browser needs a hundred libraries beside itself.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from fairlead import errors

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOW = "install the package chromium (as root: make browser), or put the program into PATH"
FLAGS = (
    # As root there is no sandbox; the only pages it opens are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_SECONDS = 900.0


def find() -> Path:
    """The program; Unavailable, with a reason to show, where there is none."""
    for name in NAMES:
        if present := shutil.which(name):
            return Path(present)
    raise errors.Unavailable("no chromium here", hint=HOW)


def install() -> Path:
    """The program, after having taken it from Debian where it was missing."""
    try:
        return find()
    except errors.Unavailable:
        if shutil.which("apt-get") is None or os.geteuid() != 0:
            raise
    _run("apt-get", "update")
    _run("apt-get", "install", "-y", "--no-install-recommends", "chromium")
    return find()


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise errors.Unavailable(f"no end in sight of: {' '.join(command)}", hint=HOW) from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise errors.Unavailable(f"{' '.join(command)} failed: {last}", hint=HOW)


def main() -> int:
    try:
        print(install())
    except errors.Unavailable as missing:
        print(f"browser: {missing.message}; {missing.hint}", file=sys.stderr)
        return missing.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
