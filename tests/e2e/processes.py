"""A control plane as a process of its own, known by what it says and ended by its id."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0


@dataclass(slots=True)
class Running:
    """One process whose standard error is read line by line."""

    process: subprocess.Popen[str]
    lines: "queue.Queue[str | None]" = field(default_factory=queue.Queue)
    said: list[str] = field(default_factory=list)

    def until(self, start: str) -> str:
        """The first line that begins so."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            assert line is not None, f"it ended: {''.join(self.said)}"
            if line.startswith(start):
                return line.strip()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)
            self.lines.put(line)
        self.lines.put(None)


@contextlib.contextmanager
def running(arguments: list[str], environment: Mapping[str, str]) -> Iterator[Running]:
    inherited = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**inherited, "FAIRLEAD_LISTEN": "127.0.0.1:0", **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = Running(process)
    reader = threading.Thread(target=run.read, daemon=True)
    reader.start()
    try:
        yield run
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(PATIENCE)
        reader.join(PATIENCE)
        assert process.stderr is not None
        process.stderr.close()
