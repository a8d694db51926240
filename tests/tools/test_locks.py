"""requirements/*.txt: pinned, hashed, without an address, and not behind pyproject.toml."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import lock, setup

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"(?P<name>[a-z0-9-]+)(?:\[[a-z0-9,-]+\])?==(?P<version>[^\s;]+)(?: ; [^#]+)?")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a lock, its continuations joined."""

    text: str

    @property
    def pin(self) -> str:
        return self.text.partition(" --hash")[0].strip()

    @property
    def hashes(self) -> list[str]:
        return self.text.split()[len(self.pin.split()) :]


def test_there_is_a_lock_for_every_set() -> None:
    assert {path.stem for path in LOCKS} == {*setup.SETS, *lock.APART, "uv"}
    assert set(setup.SETS) == set(lock.LOCKS)


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.name))
def test_a_lock_holds_hashed_pins_and_nothing_else(path: Path) -> None:
    assert list(faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: str(path.name))
def test_a_lock_names_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert re.findall(r"\S*://\S*|^-.*|\S+ @ \S+", text, re.MULTILINE) == []


@pytest.mark.parametrize("name", [*setup.SETS, *lock.APART])
def test_a_lock_satisfies_what_is_declared(name: str) -> None:
    pinned = pins((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8"))

    assert list(unsatisfied(declared(name), pinned)) == []


@pytest.mark.parametrize(("smaller", "larger"), [("runtime", "test"), ("test", "bench")])
def test_a_larger_lock_contains_the_smaller_one(smaller: str, larger: str) -> None:
    # Set-up takes a richer environment for a poorer one; that is only right if this holds.
    inner, outer = (
        pins((ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8"))
        for name in (smaller, larger)
    )

    assert {name: versions for name, versions in inner.items() if versions != outer.get(name)} == {}


@pytest.mark.parametrize(
    "line",
    [
        "click==8.2.0",
        "click>=8.2 --hash=sha256:" + "0" * 64,
        "click==8.2.0 --hash=md5:" + "0" * 32,
        "click @ https://example.org/click.whl --hash=sha256:" + "0" * 64,
        "--index-url https://example.org/simple",
        "-e .",
    ],
)
def test_a_loose_line_is_found(line: str) -> None:
    assert len(list(faults(line))) == 1


def test_a_stale_lock_is_found() -> None:
    wanted = [Requirement("click>=8.2"), Requirement("rich>=13"), Requirement("Psycopg[binary]")]

    found = list(unsatisfied(wanted, {"click": {"8.1.0"}, "psycopg": {"3.2.0"}}))

    assert found == ["click>=8.2 is pinned to 8.1.0", "rich>=13 is not pinned"]


def entries(text: str) -> Iterator[Entry]:
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    lines = (line.partition(" #")[0].strip() for line in joined.splitlines())
    return (Entry(line) for line in lines if line and not line.startswith("#"))


def faults(text: str) -> Iterator[str]:
    for entry in entries(text):
        hashed = entry.hashes and all(map(HASH.fullmatch, entry.hashes))
        if not (PIN.fullmatch(entry.pin) and hashed):
            yield entry.text


def pins(text: str) -> dict[str, set[str]]:
    """Pinned versions by name; a universal lock may hold several, by marker."""
    found: dict[str, set[str]] = {}
    for entry in entries(text):
        if match := PIN.fullmatch(entry.pin):
            found.setdefault(canonicalize_name(match["name"]), set()).add(match["version"])
    return found


def declared(name: str) -> list[Requirement]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)
    wanted = list(project["project"]["dependencies"]) if name in lock.LOCKS else []
    for option in {**lock.LOCKS, **lock.APART}[name]:
        kind, _, group = option.partition("=")
        table = {
            "--extra": project["project"]["optional-dependencies"],
            "--group": project["dependency-groups"],
        }[kind]
        wanted += table[group]
    return [Requirement(one) for one in wanted]


def unsatisfied(wanted: list[Requirement], pinned: dict[str, set[str]]) -> Iterator[str]:
    for requirement in wanted:
        versions = pinned.get(canonicalize_name(requirement.name), set())
        if not versions:
            yield f"{requirement} is not pinned"
        for version in sorted(versions):
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"{requirement} is pinned to {version}"
