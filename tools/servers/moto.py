"""AWS for tests: moto's server on a loopback port that it chooses itself.

    with MotoServer(folder) as server:
        boto3.client("s3", endpoint_url=server.url)

It ends with the process that started it.
"""

import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.cluster.process import Process

_READY_SECONDS = 120.0
_PORT = re.compile(r"Running on http://127\.0\.0\.1:(\d+)")


class MotoServer:
    """One moto; what it keeps is gone when it stops."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: Process | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        log = self._folder / "moto.log"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        self._process = Process(command, log)
        self._process.wait_until(lambda: self._listens(log), _READY_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.stop()

    def _listens(self, log: Path) -> bool:
        """It says where once it listens."""
        found = _PORT.search(log.read_text(encoding="utf-8", errors="replace"))
        if found is not None:
            self.url = f"http://127.0.0.1:{found[1]}"
        return found is not None
