"""A real PostgreSQL of our own: durable, on loopback or a socket alone, gone without a trace.

    with PostgresServer() as server:
        url = server.create_database("shop")

The server is our direct child, so we hold its process id: `restart("immediate")` is the
crash that durability tests need. fsync stays on, because what is measured and tested here
is what survives.
"""

import atexit
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from fairlead.clients.postgres.server import launch
from fairlead.clients.postgres.server.home import Home, make_home
from fairlead.clients.postgres.server.identity import ENVIRONMENT, run_as, unprivileged_identity
from fairlead.clients.postgres.server.wheel import installed_wheel, runnable_programs
from fairlead.errors import Conflict, Unavailable

READY_TIMEOUT_SECONDS = 60.0
STOP_TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.02
PORT_ATTEMPTS = 5
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "400",
    "shared_buffers": "256MB",
    "fsync": "on",
}
STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}

StopMode = Literal["fast", "immediate"]


@dataclass(frozen=True, slots=True)
class Databases:
    """The databases of one server, ours or any other, made and dropped through its admin URL."""

    admin_url: str

    def url(self, database: str) -> str:
        admin = urlsplit(self.admin_url)
        query = f"?{admin.query}" if admin.query else ""
        return f"{admin.scheme}://{admin.netloc}/{quote(database, safe='')}{query}"

    def create_database(self, name: str) -> str:
        # No STRATEGY: with the drop counted, copying files measured no faster than the
        # default, and it makes every worker wait for a checkpoint.
        self._run(sql.SQL("CREATE DATABASE {}"), name)
        return self.url(name)

    def drop_database(self, name: str) -> None:
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)"), name)

    def _run(self, statement: sql.SQL, name: str) -> None:
        with psycopg.connect(self.admin_url, autocommit=True) as connection:
            connection.execute(statement.format(sql.Identifier(name)))


class PostgresServer:
    """One PostgreSQL of our own, from start to stop."""

    def __init__(
        self, place: Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._places = None if place is None else (place,)
        self._settings = {**SETTINGS, **(settings or {})}
        self._identity = unprivileged_identity()
        self._home: Home | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def port(self) -> int:
        return self._port

    @property
    def folder(self) -> Path:
        return self._home_now.folder

    @property
    def databases(self) -> Databases:
        return Databases(f"postgresql://postgres@127.0.0.1:{self._port}/postgres")

    @property
    def socket_url(self) -> str:
        """By its socket, which only the id that runs it and root can reach."""
        host = quote(str(self._home_now.socket), safe="")
        return f"postgresql://postgres@/postgres?host={host}&port={self._port}"

    def url(self, database: str) -> str:
        return self.databases.url(database)

    def create_database(self, name: str) -> str:
        return self.databases.create_database(name)

    def drop_database(self, name: str) -> None:
        self.databases.drop_database(name)

    def start(self) -> None:
        if self._home is not None:
            raise Conflict(f"server already started on port: {self._port}", hint="stop it first")
        self._programs = runnable_programs(installed_wheel(), self._identity)
        self._home = make_home(self._identity, self._places)
        atexit.register(self.stop)
        try:
            self._make_cluster()
            self._start_on_a_free_port()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server and remove its data; the quick way, since nothing of it is kept."""
        # A forked child that exits the ordinary way must not take its parent's server along.
        if self._home is None or self._owner != os.getpid():
            return
        self._end("immediate")
        self._home.remove()
        self._home = None
        atexit.unregister(self.stop)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start on the same port and data; "immediate" is a crash with recovery."""
        self._end(mode)
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        # The URL must stay the same, so a port that was taken meanwhile is waited for.
        while not self._comes_up():
            if time.monotonic() > deadline:
                raise Unavailable(f"port taken by another: {self._port}", hint="run it once more")

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise Unavailable("server is not running", hint="call start() first")
        return self._process

    @property
    def _home_now(self) -> Home:
        if self._home is None:
            raise Unavailable("server has no folder", hint="call start() first")
        return self._home

    def _make_cluster(self) -> None:
        # --no-sync: only the empty cluster skips fsync; a start after a power cut is no case here.
        made = run_as(
            self._identity,
            [
                *(self._programs / "initdb", "--pgdata", self._home_now.data),
                *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"),
                *("--no-sync", "--no-instructions"),
            ],
            cwd=self._home_now.data,
        )
        if made.returncode != 0:
            raise Unavailable(
                f"initdb failed: {made.stderr.strip()}",
                hint="see whether TMPDIR has room",
            )

    def _start_on_a_free_port(self) -> None:
        for _ in range(PORT_ATTEMPTS):
            self._port = free_port()
            # Between our look and the server's bind anyone may take the port: then another.
            if self._comes_up():
                return
        raise Unavailable(
            f"ports were taken by others, last: {self._port}", hint="run it once more"
        )

    def _comes_up(self) -> bool:
        """True when the server answers, False when its port was taken by another."""
        log_start = self._launch()
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if self._running.poll() is not None:
                said = self._home_now.log.read_bytes()[log_start:].decode(errors="replace")
                self._process = None
                if "Address already in use" in said:
                    return False
                raise Unavailable(f"postgres ended at its start: {said[-2000:]}", hint=self._hint)
            if self._answers():
                return True
            time.sleep(POLL_SECONDS)
        self._end("immediate")
        raise Unavailable(f"postgres not ready after: {READY_TIMEOUT_SECONDS} s", hint=self._hint)

    def _launch(self) -> int:
        """Start the process; return where in the log its words begin."""
        home, identity = self._home_now, self._identity
        # The kernel's death signal follows the thread that forked, not the process: from a
        # thread that may end early it would stop a server that is still needed.
        in_main = threading.current_thread() is threading.main_thread()
        # SIGQUIT and not SIGKILL: the server then removes its shared memory itself.
        death_signal = signal.SIGQUIT if in_main else 0
        ids = (identity.uid, identity.gid) if identity else (launch.KEEP_ID, launch.KEEP_ID)
        wrapper = [sys.executable, "-I", "-S", launch.__file__]
        settings = {**self._settings, "unix_socket_directories": str(home.socket)}
        with home.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - the programs of the wheel
                [
                    *(*wrapper, *map(str, (os.getpid(), int(death_signal), *ids))),
                    *(str(self._programs / "postgres"), "-D", str(home.data)),
                    *("-p", str(self._port)),
                    *(f"--{name}={value}" for name, value in settings.items()),
                ],
                cwd=home.folder,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,  # Ctrl-C in the terminal is for the tests, not for the server
            )
            return log.tell()

    def _answers(self) -> bool:
        # By our own socket: on the port another's server might answer. The server binds the
        # port before the socket, so one that answers here has its port.
        try:
            psycopg.connect(f"{self.socket_url}&connect_timeout=5").close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, mode: StopMode) -> None:
        if self._process is None:
            return
        for request in (STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            self._process.send_signal(request)
            try:
                self._process.wait(STOP_TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            break
        self._process = None

    @property
    def _hint(self) -> str:
        return "the lines above are its log"


def free_port() -> int:
    """A loopback port that nobody holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
