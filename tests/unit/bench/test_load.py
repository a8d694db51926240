"""The load of the content benchmark: what it counts, and what it does not take for an answer."""

import contextlib
import itertools
import socketserver
import threading
from collections.abc import Iterator

import pytest

from bench import load
from bench.harness import Failed

ASKED = b"GET / HTTP/1.1\r\n\r\n"


class Answering(socketserver.ThreadingTCPServer):
    """Gives one answer after the other, the last one again."""

    daemon_threads = True

    def __init__(self, *answers: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answers = itertools.chain(answers[:-1], itertools.repeat(answers[-1]))


class Answer(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Answering)
        with contextlib.suppress(ConnectionError):
            while line := self.rfile.readline():
                if line == b"\r\n":
                    self.wfile.write(next(self.server.answers))


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    with Answering(*answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


GOOD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def test_every_request_is_answered_and_counted() -> None:
    with answering(GOOD) as port, load.Load(port, [ASKED]) as found:
        rate = found.saturate(500)
        paced = found.paced(rate=500, seconds=0.5)

    assert rate > 0
    assert found.sent == 500 + 250
    assert 0 < paced["p50_ms"] <= paced["p99_ms"]


@pytest.mark.parametrize(
    "answer", [GOOD.replace(b"200 OK", b"500 no"), GOOD.replace(b"2\r\n", b"3\r\n") + b"!"]
)
def test_an_answer_that_is_another_fails_the_contestant(answer: bytes) -> None:
    with answering(GOOD, answer) as port, load.Load(port, [ASKED]) as found, pytest.raises(Failed):
        found.saturate(500)


def test_an_answer_without_a_body_ends_with_its_head() -> None:
    unmodified = b"HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n"

    with answering(unmodified) as port, load.Load(port, [ASKED], b"HTTP/1.1 304") as found:
        assert found.saturate(100) > 0
