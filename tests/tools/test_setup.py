"""tools/setup.py on a machine with python3 only, tried in a copy and without a network.

A script stands in for uv: it keeps a diary of what it was asked, and makes the folders
that the real one would make.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tools import setup

ROOT = Path(__file__).resolve().parents[2]
UV = """\
import os, pathlib, sys
home = pathlib.Path(os.environ["HOME"])
with (home / "diary").open("a") as diary:
    print(*sys.argv[1:], file=diary)
if sys.argv[1] == "venv":
    made = pathlib.Path(sys.argv[-1])
    site = made / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    (site / "site-packages").mkdir(parents=True)
    (made / "bin").mkdir()
    (made / "bin" / "python").symlink_to(sys.executable)
elif (home / "broken").exists():
    sys.exit(2)
"""


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of what set-up reads, and a home of its own."""

    root: Path
    home: Path

    def run(self, *arguments: str, uv: bool = True) -> subprocess.CompletedProcess[str]:
        path = str(self.home / "bin") if uv else os.devnull
        return subprocess.run(
            [sys.executable, str(self.root / "tools" / "setup.py"), *arguments],
            env={"PATH": path, "HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
        )

    def diary(self) -> list[str]:
        """What uv was asked since the last look."""
        file = self.home / "diary"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines

    def stamps(self) -> list[str]:
        return sorted(path.name.rpartition("-")[0] for path in self.venv.glob(".fairlead-*"))

    @property
    def venv(self) -> Path:
        return self.root / ".venv"


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    made = Copy(tmp_path / "copy", tmp_path / "home")
    (made.root / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools" / "setup.py", made.root / "tools")
    shutil.copytree(ROOT / "requirements", made.root / "requirements")
    (made.home / "bin").mkdir(parents=True)
    uv = made.home / "bin" / "uv"
    uv.write_text(f"#!{sys.executable}\n{UV}")
    uv.chmod(0o755)
    return made


def test_set_up_installs_the_hashed_lock_and_says_so(copy: Copy) -> None:
    done = copy.run("test")

    assert done.returncode == 0, done.stderr
    made, installed = copy.diary()
    assert made.startswith("venv ")
    assert installed.startswith("pip install ")
    assert "--require-hashes" in installed
    assert installed.endswith(str(copy.root / "requirements" / "test.txt"))
    assert all(line.startswith("setup: ") for line in done.stderr.splitlines())
    assert done.stdout == ""


def test_sources_and_command_are_linked(copy: Copy) -> None:
    copy.run("runtime")

    (link,) = copy.venv.rglob("fairlead-src.pth")
    command = copy.venv / "bin" / "fairlead"
    assert link.read_text() == f"{copy.root / 'src'}\n"
    assert command.read_text().startswith(f"#!{copy.venv / 'bin' / 'python'}\n")
    assert os.access(command, os.X_OK)


def test_the_second_run_is_free_and_silent(copy: Copy) -> None:
    copy.run("test")
    copy.diary()

    again = copy.run("test")

    assert (again.returncode, again.stderr, copy.diary()) == (0, "", [])


def test_a_changed_lock_is_installed(copy: Copy) -> None:
    copy.run("test")
    copy.diary()
    with (copy.root / "requirements" / "test.txt").open("a") as lock:
        lock.write("# a new pin\n")

    again = copy.run("test")

    assert again.returncode == 0
    assert [line.partition(" ")[0] for line in copy.diary()] == ["pip"]


def test_a_larger_set_serves_for_a_smaller_one(copy: Copy) -> None:
    copy.run("bench")
    copy.diary()

    copy.run("runtime")
    copy.run("test")

    assert copy.diary() == []
    assert copy.stamps() == [".fairlead-bench"]


def test_a_smaller_set_does_not_serve_for_a_larger_one(copy: Copy) -> None:
    copy.run("runtime")
    copy.diary()

    copy.run("test")

    assert len(copy.diary()) == 1
    assert copy.stamps() == [".fairlead-runtime", ".fairlead-test"]


def test_a_failed_install_leaves_no_stamp_and_gives_a_hint(copy: Copy) -> None:
    (copy.home / "broken").touch()

    failed = copy.run("test")

    assert failed.returncode == 1
    assert "error: uv stopped with code 2" in failed.stderr
    assert "hint: " in failed.stderr
    assert "Traceback" not in failed.stderr
    assert copy.stamps() == []


def test_set_up_goes_on_after_a_failed_install(copy: Copy) -> None:
    (copy.home / "broken").touch()
    copy.run("test")
    (copy.home / "broken").unlink()

    again = copy.run("test")

    assert again.returncode == 0
    assert copy.stamps() == [".fairlead-test"]


def test_an_unknown_set_is_refused_with_the_choices(copy: Copy) -> None:
    refused = copy.run("everything")

    assert refused.returncode == 1
    assert "error: no such set of dependencies: everything" in refused.stderr
    assert "hint: choose one of runtime, test, bench" in refused.stderr
    assert copy.diary() == []


def test_a_machine_that_cannot_make_an_environment_gets_a_hint(copy: Copy) -> None:
    # A file where the folder should be: venv fails as it does where it is not installed.
    copy.venv.write_text("in the way")

    failed = copy.run("test", uv=False)

    assert failed.returncode == 1
    assert "error: cannot make a virtual environment" in failed.stderr
    assert "hint: install python3-venv (or uv)" in failed.stderr


def test_an_old_python_is_refused_with_a_hint(copy: Copy) -> None:
    script = copy.root / "tools" / "setup.py"
    script.write_text(script.read_text().replace("(3, 11)", "(99, 0)"))

    refused = copy.run("test")

    assert refused.returncode == 1
    assert "is too old" in refused.stderr
    assert "hint: " in refused.stderr
    assert copy.diary() == []


@pytest.mark.parametrize(
    ("system", "machine", "libc", "built"),
    [
        ("Linux", "x86_64", "glibc", True),
        ("Linux", "aarch64", "glibc", True),
        ("Linux", "riscv64", "glibc", False),
        ("Linux", "x86_64", "", False),
        ("Darwin", "arm64", "", True),
    ],
)
def test_a_system_without_an_envoy_is_named(
    system: str, machine: str, libc: str, *, built: bool
) -> None:
    said = setup.envoy_lacking(system, machine, libc)

    assert bool(said) is not built
    assert built or said.endswith(f"{system} {machine} {libc}".strip())
