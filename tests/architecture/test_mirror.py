"""A module's test is found by the module's name: tests/unit has the folders of src/fairlead.

`test_runner.py` tests `runner.py` beside it; `test_runner_storm.py` is one more file for the same
module. What several modules do together is tested as their package, `test_PACKAGE_….py`, one folder
up.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from tests.architecture.sources import ROOT

UNIT = "tests/unit"
OTHERS = ("bench", "tools")
"""Folders of the repository beside src, whose tests are there too."""


def test_every_unit_test_is_named_after_a_module() -> None:
    tests = (path.relative_to(ROOT).as_posix() for path in (ROOT / UNIT).rglob("test_*.py"))

    assert sorted(strays(tests, modules())) == []


def test_a_test_of_no_module_is_found() -> None:
    known = {"engine/runner", "engine"}
    tests = [
        "tests/unit/engine/test_runner.py",
        "tests/unit/engine/test_runner_storm.py",
        "tests/unit/test_engine_whole.py",
        "tests/unit/tools/test_anything.py",
        "tests/unit/engine/test_storm.py",
        "tests/unit/test_runner.py",
    ]

    assert list(strays(tests, known)) == tests[-2:]


def strays(tests: Iterable[str], known: set[str]) -> Iterator[str]:
    """Tests whose name begins with no module of the folder that they mirror."""
    for test in tests:
        path = PurePosixPath(test).relative_to(UNIT)
        if path.parts[0] in OTHERS:
            continue
        words = path.stem.removeprefix("test_").split("_")
        names = ("_".join(words[:count]) for count in range(1, len(words) + 1))
        if not any((path.parent / name).as_posix() in known for name in names):
            yield test


def modules() -> set[str]:
    """Modules and packages of src/fairlead, as paths without an ending."""
    top = ROOT / "src" / "fairlead"
    found = {path.relative_to(top).with_suffix("").as_posix() for path in top.rglob("*.py")}
    return found | {Path(path).parent.as_posix() for path in found}
