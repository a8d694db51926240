"""A real pgbouncer for tests: found in PATH, or taken from Debian's packages.

with PgBouncer(folder, server_port, "transaction") as pooler:
    url = pooler.url("shop")
    pooler.follow(other_port)   # where `folder` can be entered by all, for it is read again
"""

import os
import shutil
import signal
import socket
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tools.cluster.process import Process, free_port
from tools.servers import debian

HOW = "install the package pgbouncer, or put the program into PATH"
PACKAGES = ("pgbouncer", "libc-ares2", "libevent-2.1-7")
_HOST = "127.0.0.1"
_READY_SECONDS = 30.0

Mode = Literal["session", "transaction", "statement"]


class PgBouncer:
    """One pooler on a free loopback port, before one server."""

    def __init__(self, folder: Path, server_port: int, mode: Mode, pool_size: int = 60) -> None:
        self._folder = folder
        self._server_port = server_port
        self.mode = mode
        self._pool_size = pool_size
        self._process: Process | None = None
        self.port = free_port()

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        # Root is refused as who runs it, not as who starts it.
        switch = ["--user=nobody"] if os.geteuid() == 0 else []
        command = [*find(), *switch, str(self._config())]
        self._process = Process(command, self._folder / "pgbouncer.log")
        self._process.wait_until(self._answers, _READY_SECONDS)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def url(self, database: str) -> str:
        return f"postgresql://postgres@{_HOST}:{self.port}/{database}"

    def follow(self, server_port: int) -> None:
        """Another server leads: clients keep their connections where the mode lets them."""
        self._server_port = server_port
        self._config()
        if self._process is not None:
            os.kill(self._process.pid, signal.SIGHUP)

    def _config(self) -> Path:
        users = self._folder / "users.txt"
        users.write_text('"postgres" ""\n', encoding="utf-8")
        settings = {
            "listen_addr": _HOST,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": users,
            "pool_mode": self.mode,
            "default_pool_size": self._pool_size,
            "server_tls_sslmode": "disable",
            # By default it refuses all for 15 s after the server was not there.
            "server_login_retry": 1,
            # In session mode it would else keep clients on a server that leads no more.
            "server_fast_close": 1,
        }
        lines = [
            *("[databases]", f"* = host={_HOST} port={self._server_port}"),
            *("[pgbouncer]", *(f"{name} = {value}" for name, value in settings.items())),
        ]
        config = self._folder / "pgbouncer.ini"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return config

    def _answers(self) -> bool:
        try:
            socket.create_connection((_HOST, self.port), timeout=1).close()
        except OSError:
            return False
        return True


def find() -> list[str]:
    """The command; Unavailable, with a reason to show, where there is none to be had."""
    present = shutil.which("pgbouncer")
    if present:
        return [present]
    root = debian.unpacked(PACKAGES, HOW)
    libraries = ":".join(map(str, sorted(root.glob("usr/lib/*-linux-*"))))
    return ["env", f"LD_LIBRARY_PATH={libraries}", str(root / "usr" / "sbin" / "pgbouncer")]
