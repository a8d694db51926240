"""The plug-in of tests/marks.py, in a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("mark", "fault"),
    [
        ('requirement("canary R99")', "unknown requirement 'canary R99' in the mark of test_a.py"),
        ('requirement("R12")', "unknown requirement 'R12'"),
        ('requirement("canary R12", "gitops 99")', "unknown requirement 'gitops 99'"),
        ("requirement(12)", "unknown requirement 12"),
        ("requirement()", "requirement mark without an id: test_a.py::test_a"),
        ('requirement(id="canary R12")', "requirement mark without an id"),
    ],
)
def test_a_wrong_mark_fails_the_run_before_any_test(tmp_path: Path, mark: str, fault: str) -> None:
    done = collect(tmp_path, mark)

    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert fault in done.stderr
    assert "hint: " in done.stderr


def test_a_known_id_passes(tmp_path: Path) -> None:
    done = collect(tmp_path, 'requirement("canary R12", "deployer P4a", "content 1")')

    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr


def collect(folder: Path, mark: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_a.py").write_text(
        f"import pytest\n\n@pytest.mark.{mark}\ndef test_a():\n    assert True\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    requirement(*ids): ids\n")
    command = [sys.executable, "-m", "pytest", "-p", "tests.marks", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
