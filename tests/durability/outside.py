"""The outside world of these tests: a book that outlives every process that writes in it.

Each performance of an effect is one line, appended in one system call, so a process that is
killed has either written it or not. Like a service with idempotency keys, the outside accepts
the first request of a key and answers the later ones as already done.
"""

import collections
import json
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    """What reached the outside, by whom."""

    what: str
    key: str
    attempt: int
    pid: int


@dataclass(frozen=True, slots=True)
class Outside:
    """The book."""

    path: Path

    def request(self, what: str, key: str, attempt: int) -> None:
        line = json.dumps([what, key, attempt, os.getpid()]) + "\n"
        rollout = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(rollout, line.encode())
        finally:
            os.close(rollout)

    def requests(self) -> list[Request]:
        if not self.path.exists():
            return []
        return [Request(*json.loads(line)) for line in self.path.read_text().splitlines()]

    def count(self) -> int:
        return len(self.requests())

    def accepted(self) -> dict[str, list[str]]:
        """What was asked, each with the keys under which it was accepted."""
        found: dict[str, list[str]] = collections.defaultdict(list)
        seen: set[str] = set()
        for request in self.requests():
            if request.key not in seen:
                seen.add(request.key)
                found[request.what].append(request.key)
        return dict(found)
