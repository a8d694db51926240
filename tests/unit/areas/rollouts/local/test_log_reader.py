"""The log files of a workload: by process, by revision, and on from where a reader stopped."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.rollouts.local import log_reader
from fairlead.areas.rollouts.workload_logs import LogPage, LogRequest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "shop.primary-r1.0": "a\nb\nc\n",
        "shop.canary-r2.0": "x\n",
        "shop.primary-r0.0": "old\n",
        "shop.envoy": "proxy\n",
        "shopping.primary-r1.0": "other\n",
    }.items():
        (tmp_path / f"{name}.log").write_text(text, encoding="utf-8")
    return tmp_path


def read(folder: Path, revision: str = "", tail: int = 2, after: str = "") -> LogPage:
    request = LogRequest("shop", revision, tail, after)
    return log_reader.read(folder, request, lambda program: "r0" not in program)


def said(page: LogPage) -> list[str]:
    return [f"{line.source} {line.text}" for line in page.lines]


def test_the_last_lines_of_each_process_that_runs(folder: Path) -> None:
    assert said(read(folder)) == ["canary-r2.0 x", "primary-r1.0 b", "primary-r1.0 c"]


def test_a_revision_that_has_stopped_can_be_named(folder: Path) -> None:
    assert said(read(folder, "r0")) == ["primary-r0.0 old"]


def test_a_reader_goes_on_with_whole_lines_and_new_processes(folder: Path) -> None:
    first = read(folder)
    with (folder / "shop.primary-r1.0.log").open("a", encoding="utf-8") as log:
        log.write("d\nhalf")
    (folder / "shop.canary-r3.0.log").write_text("new\n", encoding="utf-8")
    second = read(folder, after=first.next)
    with (folder / "shop.primary-r1.0.log").open("a", encoding="utf-8") as log:
        log.write(" a line\n")
    third = read(folder, after=second.next)

    assert said(second) == ["canary-r3.0 new", "primary-r1.0 d"]
    assert said(third) == ["primary-r1.0 half a line"]
    assert said(read(folder, after=third.next)) == []


def test_a_log_that_was_rotated_is_read_from_its_start(folder: Path) -> None:
    page = read(folder)
    (folder / "shop.primary-r1.0.log").write_text("z\n", encoding="utf-8")

    assert said(read(folder, after=page.next)) == ["primary-r1.0 z"]


def test_an_answer_is_bounded(folder: Path) -> None:
    file = folder / "shop.primary-r1.0.log"
    file.write_bytes(b"x" * (1024 * 1024))

    page = read(folder, "r1")

    assert len(page.lines[0].text) == 256 * 1024


@pytest.mark.parametrize("after", ["x", "a:b", ":5", "a:-1", f"a:{'9' * 30}"])
def test_a_place_that_is_none_is_refused(folder: Path, after: str) -> None:
    with pytest.raises(errors.Rejected, match="not a place in a log"):
        read(folder, after=after)
