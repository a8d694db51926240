"""Three PostgreSQL nodes under Patroni, as people run them in production, on loopback.

    with PatroniCluster() as cluster:
        url = cluster.databases.create_database("shop")     # names all three hosts
        leader = cluster.leader()
        leader.kill(); cluster.wait_for_another_leader(leader); leader.start()

Each node is a sandbox (tools/servers/sandbox.py) with its own Patroni, and is reached by others,
and reaches etcd, only over its own link (tools/servers/link.py). Replication is synchronous and
fsync is on, because what is tested here is what survives.
"""

import contextlib
import http.client
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fairlead import errors
from fairlead.clients.postgres.server.home import Home, make_home
from fairlead.clients.postgres.server.running import Databases
from fairlead.clients.postgres.server.wheel import installed_wheel
from tools.cluster import parts
from tools.cluster.process import Process, free_port
from tools.servers import link, patroni_install, sandbox

NODES = 3
READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_DIAL_SECONDS = 2.0
_HAND_OVER_SECONDS = 60.0
_HOST = "127.0.0.1"
_PAGE = 8192
# The shortest that Patroni allows; its defaults are 30, 10 and 10.
QUICK = {"ttl": 20, "loop_wait": 2, "retry_timeout": 5}
SERVER = {"shared_buffers": "32MB", "max_connections": "100", "fsync": "on"}


@dataclass(frozen=True, slots=True)
class Manner:
    """How the cluster decides who leads."""

    timing: Mapping[str, int] = field(default_factory=lambda: dict(QUICK))
    synchronous: bool = True


USUAL = Manner()


def check() -> None:
    """Unavailable, with a reason to show, where one of the parts is missing."""
    patroni_install.find()
    _etcd_program()
    sandbox.check()


class PatroniCluster:
    """The nodes and their etcd, from start to stop."""

    def __init__(self, manner: Manner = USUAL) -> None:
        self._manner = manner
        self._folder: Path | None = None
        self._etcd: Process | None = None
        self.nodes: list[Node] = []

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def databases(self) -> Databases:
        hosts = ",".join(f"{_HOST}:{node.port}" for node in self.nodes)
        return Databases(f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write")

    def start(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="fairlead-etcd-"))
        etcd_port = self._start_etcd(self._folder)
        for number in range(NODES):
            node = Node(f"node{number}", etcd_port, self._manner)
            self.nodes.append(node)
            node.start()
        self.wait_until_whole()

    def stop(self) -> None:
        for node in self.nodes:
            node.remove()
        self.nodes.clear()
        if self._etcd is not None:
            self._etcd.kill()
            self._etcd = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def leader(self) -> "Node":
        """Who holds the lock and says so; Unavailable while nobody does."""
        for node in self.nodes:
            if node.leads():
                return node
        raise errors.Unavailable("no node leads", hint="wait for it")

    def hand_over(self, seconds: float = READY_SECONDS) -> None:
        """Let another node lead, in peace, as before maintenance."""
        leader = self.leader()
        # Patroni refuses while it does not know how far the others have followed.
        self._wait_until(leader.hands_over, seconds)
        self.wait_for_another_leader(leader, seconds)

    def wait_for_another_leader(self, old: "Node", seconds: float = READY_SECONDS) -> "Node":
        others = [node for node in self.nodes if node is not old]
        self._wait_until(lambda: any(node.leads() for node in others), seconds)
        return next(node for node in others if node.leads())

    def wait_until_whole(self, seconds: float = READY_SECONDS) -> None:
        """One leads, all others follow, and one of them keeps every commit before it is told."""
        self._wait_until(self._is_whole, seconds)

    def _is_whole(self) -> bool:
        try:
            members = self.leader().members()
        except errors.Unavailable:
            return False
        roles = sorted(member["role"] for member in members)
        following = [member for member in members if member["state"] == "streaming"]
        kept = "sync_standby" if self._manner.synchronous else "replica"
        return roles == sorted(["leader", kept, "replica"]) and len(following) == NODES - 1

    def _wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not ready():
            if time.monotonic() > deadline:
                said = "\n".join(node.last_words() for node in self.nodes)
                raise errors.Unavailable(
                    f"the nodes did not settle in {seconds:.0f} s: {said}", hint="see above"
                )
            time.sleep(_POLL_SECONDS)

    def _start_etcd(self, folder: Path) -> int:
        port, peer = free_port(), f"http://{_HOST}:{free_port()}"
        client = f"http://{_HOST}:{port}"
        command = [
            str(_etcd_program()),
            f"--data-dir={folder / 'data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
            # It does not survive the machine, so it need not wait for the disk.
            "--unsafe-no-fsync=true",
        ]
        self._etcd = Process(command, folder / "etcd.log")
        self._etcd.wait_until(lambda: _answers(port, "/health"), READY_SECONDS)
        return port


class Node:
    """One machine of the cluster, with its network."""

    def __init__(self, name: str, etcd_port: int, manner: Manner) -> None:
        self.name = name
        self.port = free_port()
        """Where others reach its PostgreSQL; a cut link closes this one."""

        self._home: Home = make_home(None)
        self._inner = {kind: free_port() for kind in ("postgres", "rest")}
        self._outer = {"postgres": self.port, "rest": free_port(), "etcd": free_port()}
        self._link_log = self._home.folder / "link.log"
        self._link = Process(self._link_command(etcd_port), self._link_log)
        self._machine: sandbox.Sandbox | None = None
        self._config = self._home.folder / "patroni.json"
        self._config.write_text(json.dumps(self._settings(manner)), encoding="utf-8")

    def start(self) -> None:
        """On the data it had; does not wait until it follows."""
        if self._machine is None:
            command = [sys.executable, "-m", "patroni", str(self._config)]
            environment = {"PYTHONPATH": str(patroni_install.find())}
            self._machine = sandbox.Sandbox(command, self._home.log, environment)

    def kill(self) -> None:
        """Power lost: Patroni and PostgreSQL end at once."""
        if self._machine is not None:
            self._machine.kill()
            self._machine = None

    def pause(self) -> None:
        if self._machine is not None:
            self._machine.pause()

    def resume(self) -> None:
        if self._machine is not None:
            self._machine.resume()

    def fill_disk(self, seconds: float = READY_SECONDS) -> None:
        """PostgreSQL can write nothing more, and ends; Patroni starts it anew with room again.

        A limit on file sizes makes the same writes fail as a full disk does. The first is one
        of the write-ahead log, at which PostgreSQL panics.
        """
        cramped = self._postgres_pids()
        for pid in cramped:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (_PAGE, resource.RLIM_INFINITY))
        deadline = time.monotonic() + seconds
        while any(pid in cramped for pid in self._postgres_pids()):
            if time.monotonic() > deadline:
                raise errors.Unavailable(f"nothing was written by: {self.name}", hint="add load")
            time.sleep(_POLL_SECONDS)

    def _postgres_pids(self) -> list[int]:
        return [pid for pid in self._machine.pids() if _is_postgres(pid)] if self._machine else []

    def cut(self) -> None:
        """No packet in or out, and nobody is told so."""
        os.kill(self._link.pid, signal.SIGSTOP)

    def mend(self) -> None:
        os.kill(self._link.pid, signal.SIGCONT)

    def remove(self) -> None:
        self.kill()
        self._link.kill()
        self._home.remove()

    def leads(self) -> bool:
        return _answers(self._inner["rest"], "/primary")

    def members(self) -> list[dict[str, Any]]:
        """All nodes, as its Patroni knows them."""
        with _asked(self._inner["rest"], "/cluster") as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())["members"]
            return found

    def hands_over(self) -> bool:
        order = json.dumps({"leader": self.name})
        try:
            with _asked(self._inner["rest"], "/switchover", order, _HAND_OVER_SECONDS):
                return True
        except errors.Unavailable:
            return not self.leads()

    def last_words(self) -> str:
        return self._home.log.read_text(errors="replace")[-1500:] if self._home.log.exists() else ""

    def _link_command(self, etcd_port: int) -> list[str]:
        targets = {**self._inner, "etcd": etcd_port}
        ways = [f"{self._outer[kind]}:{target}" for kind, target in targets.items()]
        return [sys.executable, "-I", "-S", link.__file__, *ways]

    def _settings(self, manner: Manner) -> dict[str, Any]:
        postgres = {"use_pg_rewind": True, "parameters": SERVER}
        return {
            "scope": "fairlead",
            "name": self.name,
            "restapi": {
                "listen": f"{_HOST}:{self._inner['rest']}",
                "connect_address": f"{_HOST}:{self._outer['rest']}",
            },
            # A proxy is not asked for the address of the server behind it, which has no link.
            "etcd3": {"host": f"{_HOST}:{self._outer['etcd']}", "use_proxies": True},
            "bootstrap": {
                "dcs": {
                    **manner.timing,
                    "synchronous_mode": manner.synchronous,
                    "postgresql": postgres,
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": self._postgres_settings(),
        }

    def _postgres_settings(self) -> dict[str, Any]:
        return {
            "listen": f"{_HOST}:{self._inner['postgres']}",
            "connect_address": f"{_HOST}:{self._outer['postgres']}",
            "data_dir": str(self._home.data),
            "bin_dir": str(installed_wheel().programs),
            "pgpass": str(self._home.folder / "pgpass"),
            "authentication": {
                kind: {"username": "postgres"} for kind in ("superuser", "replication", "rewind")
            },
            "pg_hba": [
                "local all all trust",
                "host all all 127.0.0.1/32 trust",
                "host replication all 127.0.0.1/32 trust",
            ],
            "parameters": {"unix_socket_directories": str(self._home.socket)},
        }


def _is_postgres(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip() == "postgres"
    except OSError:
        return False


def _etcd_program() -> Path:
    try:
        return parts.find().program("etcd")
    except errors.NotFound as missing:
        raise errors.Unavailable(missing.message, hint="run `make cluster`") from missing


def _answers(port: int, path: str) -> bool:
    try:
        with _asked(port, path):
            return True
    except errors.Unavailable:
        return False


@contextlib.contextmanager
def _asked(
    port: int, path: str, order: str = "", seconds: float = _DIAL_SECONDS
) -> Iterator[http.client.HTTPResponse]:
    connection = http.client.HTTPConnection(_HOST, port, timeout=seconds)
    with contextlib.closing(connection):
        try:
            connection.request("POST" if order else "GET", path, order or None)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise errors.Unavailable(f"no answer from: {path}", hint="is it started?") from error
        if answer.status != http.HTTPStatus.OK:
            said = answer.read().decode(errors="replace").strip()
            raise errors.Unavailable(
                f"{path} answered {answer.status}: {said}", hint="ask another node"
            )
        yield answer
