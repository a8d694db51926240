"""Make the missing parts of the cluster, once for all clones of the repository.

Programs are compiled and files taken from the Go modules that tests/cluster/rig pins. Each part
appears under its name only when it is whole, so tests may start while later parts are made.
"""

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from fairlead import errors
from tools.cluster import parts, process

_SECONDS_BETWEEN_LINES = 10.0
_LAST_LINES = 30


def build(jobs: int | None = None, *, extras: bool = False) -> parts.Parts:
    """Every missing part of a cluster, or with `extras` of the data plane instead.

    `jobs` bounds how many packages are compiled at once.
    """
    missing = _missing(extras=extras)
    if not missing:
        return parts.find()
    if shutil.which("go") is None:
        raise errors.Unavailable(
            "cannot build the test cluster: go is not on PATH",
            hint="install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder that has "
            + ", ".join(missing),
        )
    # Asked again under the lock: while we waited, another builder may have made all of it.
    pinned = (*parts.PROGRAMS, *parts.FILES, *parts.EXTRAS, *parts.EXTRA_FILES)
    make(parts.cache_folder(), pinned, lambda: _missing(extras=extras), jobs)
    return parts.find()


def _missing(*, extras: bool) -> tuple[str, ...]:
    found = parts.find()
    return found.missing_extras() if extras else found.missing()


def make(
    cache: Path,
    pinned: Sequence[parts.Program | parts.Files],
    missing: Callable[[], tuple[str, ...]],
    jobs: int | None = None,
) -> None:
    """What is missing of these in the folder; nobody else makes them meanwhile."""
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache):
        names = missing()
        for number, name in enumerate(names, 1):
            progress = f"[{number}/{len(names)}] {name}"
            files = [part for part in pinned if isinstance(part, parts.Files)]
            wanted = [part for part in files if part.folder == name]
            if wanted:
                _fetch(wanted, cache / name, progress)
            for part in pinned:
                if isinstance(part, parts.Program) and part.name == name:
                    _compile(part, cache / name, jobs, progress)
        if names:
            _say(f"ready in {cache}")


def _compile(program: parts.Program, target: Path, jobs: int | None, progress: str) -> None:
    _say(f"{progress}: compiling")
    started = time.monotonic()
    unfinished = target.with_name(f"{target.name}.unfinished")
    bound = ["-p", str(jobs)] if jobs else []
    make = ["go", "build", "-v", "-trimpath", "-buildvcs=false", *bound]
    command = [*make, "-ldflags", program.linker, "-o", str(unfinished), program.package]
    with subprocess.Popen(
        command,
        cwd=program.module,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
        # Else a compiler whose builder was killed, and with it the lock, would write its
        # program into the next builder's.
        preexec_fn=process.die_with(os.getpid()),  # noqa: PLW1509  only a system call, no threads
    ) as go:
        assert go.stderr is not None
        last = _watch(go.stderr, progress, started)
    if go.returncode != 0:
        raise errors.Unavailable(
            f"cannot compile {program.name}: {' | '.join(last)}",
            hint="the module proxy must answer (go env GOPROXY) and 5 GB of disk be free",
        )
    unfinished.replace(target)
    size = target.stat().st_size / 1e6
    _say(f"{progress}: {size:.0f} MB after {time.monotonic() - started:.0f} s")


def _watch(lines: Iterable[str], progress: str, started: float) -> list[str]:
    """Tells how far the compiler is; its last lines are kept for the error message."""
    last: list[str] = []
    told = started
    for count, line in enumerate(lines, 1):
        last = [*last[1 - _LAST_LINES :], line.strip()]
        now = time.monotonic()
        if now - told > _SECONDS_BETWEEN_LINES:
            _say(f"{progress}: {count} packages after {now - started:.0f} s")
            told = now
    return last


def _fetch(wanted: Iterable[parts.Files], target: Path, progress: str) -> None:
    unfinished = target.with_name(f"{target.name}.unfinished")
    unfinished.mkdir(parents=True)
    for files in wanted:
        for source in sorted(_module_folder(files).glob(files.pattern)):
            if source.name != "kustomization.yaml":
                shutil.copyfile(source, unfinished / source.name)
    if not any(unfinished.iterdir()):
        raise errors.NotFound(
            f"no file in the Go module matches: {target.name}",
            hint="its layout changed; correct FILES in tools/cluster/parts.py",
        )
    unfinished.replace(target)
    _say(f"{progress}: {len(list(target.iterdir()))} files")


def _module_folder(files: parts.Files) -> Path:
    asked = ["go", "mod", "download", "-json", files.module]
    answer = subprocess.run(
        asked,
        cwd=files.pinned_by,
        env=_environment(),
        stdout=subprocess.PIPE,
        check=False,
    )
    found = json.loads(answer.stdout or "{}")
    if "Dir" not in found:
        raise errors.Unavailable(
            f"cannot fetch {files.module}: {found.get('Error', 'no answer from go')}",
            hint="the module proxy must answer (go env GOPROXY)",
        )
    return Path(found["Dir"])


@contextlib.contextmanager
def _alone(cache: Path) -> Iterator[None]:
    """One builder at a time in this folder; what a killed one left half made is removed."""
    with (cache / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another build is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in itertools.chain(cache.glob("*.unfinished"), cache.glob("*/*.unfinished")):
            if left.is_dir():
                shutil.rmtree(left)
            else:
                left.unlink()
        yield


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-mod=readonly"}


def _say(text: str, to: TextIO = sys.stderr) -> None:
    print(f"cluster: {text}", file=to, flush=True)
