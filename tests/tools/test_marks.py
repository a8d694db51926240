"""The plug-in of tests/marks.py, in a run of pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_wrong_mark_fails_its_test_before_it_runs(tmp_path: Path, workers: tuple[str]) -> None:
    wrong = {
        'requirement("canary R99")': "unknown requirement: 'canary R99'",
        'requirement("R12")': "unknown requirement: 'R12'",
        'requirement("canary R12", "gitops 99")': "unknown requirement: 'gitops 99'",
        "requirement(12)": "unknown requirement: 12",
        "requirement()": "requirement mark without an id",
        'requirement(id="canary R12")': "requirement mark without an id",
    }

    done = run(tmp_path, *wrong, options=workers)

    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert f"{len(wrong)} errors in" in done.stdout
    assert [fault for fault in wrong.values() if fault not in done.stdout] == []
    assert "hint: the ids stand in tests/requirements/" in done.stdout


def test_a_known_id_passes(tmp_path: Path) -> None:
    done = run(tmp_path, 'requirement("canary R12", "deployer P4a", "content 1")', "slow")

    assert done.returncode == pytest.ExitCode.OK, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def run(
    folder: Path, *marks: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    tests = (
        f"@pytest.mark.{mark}\ndef test_{number}():\n    assert True\n"
        for number, mark in enumerate(marks)
    )
    (folder / "test_a.py").write_text("\n".join(("import pytest", *tests)))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    requirement: ids\n    slow: waits")
    command = [sys.executable, "-m", "pytest", "-p", "tests.marks", "-p", "no:cacheprovider"]
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [*command, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
