"""Standard error in a server: nothing blocks, nothing raises, and what was dropped is told."""

import os
import re
import sys
from collections.abc import Iterator

import pytest

from fairlead.console import stderr

PATIENCE = 60.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def _told(text: bytes) -> int:
    found = re.findall(rb"standard error was full: (\d+)\n", text)
    return sum(map(int, found))


def stream(writing: int) -> stderr.QueuedStderr:
    return stderr.QueuedStderr(writing, terminal=False)


def test_lines_arrive_in_their_order(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    given = stream(writing)

    for line in ("one\n", "two\n", "half of a pair: \ud800\n"):
        given.write(line)

    assert given.drain(PATIENCE)
    assert os.read(reading, 4096) == b"one\ntwo\nhalf of a pair: \\ud800\n"


@pytest.mark.parametrize("blocking", [True, False])
def test_a_pipe_that_nobody_reads_drops_lines_and_says_so_later(
    pipe: tuple[int, int], *, blocking: bool
) -> None:
    reading, writing = pipe
    os.set_blocking(writing, blocking)
    given = stream(writing)
    line = "x" * 1023 + "\n"

    written = 2 * stderr.MOST_BYTES // len(line)
    for _ in range(written):
        given.write(line)

    assert not given.drain(0.0)
    text = b""
    while text.count(b"x\n") + (dropped := _told(text)) < written:
        text += os.read(reading, 1 << 16)
    assert dropped > 0
    assert given.drain(PATIENCE)


def test_a_full_disk_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stderr, "_PAUSE_SECONDS", 0.0)
    full = os.open("/dev/full", os.O_WRONLY)
    given = stream(full)

    assert given.write("lost\n") == len("lost\n")

    assert given.drain(PATIENCE)
    assert given._dropped == 1
    os.close(full)


def test_only_a_stream_with_a_file_behind_it_is_replaced(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int]
) -> None:
    with os.fdopen(os.dup(pipe[1]), "w") as real:
        for given, replaced in ((None, False), (real, True)):
            monkeypatch.setattr("sys.stderr", given)

            stderr.queue()
            first = sys.stderr
            stderr.queue()

            assert sys.stderr is first
            assert isinstance(first, stderr.QueuedStderr) is replaced
