"""Our own PostgreSQL: unprivileged, durable, and gone without a trace."""

import os
import pwd
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from fairlead.clients.postgres.server import home, running
from fairlead.clients.postgres.server.identity import unprivileged_identity
from fairlead.clients.postgres.server.running import Databases, PostgresServer
from fairlead.clients.postgres.server.wheel import installed_wheel
from fairlead.errors import Conflict, Unavailable

ROOT = Path(__file__).resolve().parents[3]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="shows what only root could get wrong")


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


def family(pid: int) -> set[int]:
    """The process and its children, as the kernel lists them."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid, *map(int, children)}


def alive(pids: set[int]) -> set[int]:
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def wait_until_gone(pids: set[int]) -> None:
    deadline = time.monotonic() + 20
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert alive(pids) == set()


def modes_above(*paths: Path) -> dict[Path, tuple[int, int, int]]:
    above = {parent for path in paths for parent in (path, *path.resolve().parents)}
    found = {folder: folder.stat() for folder in above}
    return {folder: (s.st_mode, s.st_uid, s.st_gid) for folder, s in found.items()}


def count(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


@as_root
def test_server_runs_under_an_unprivileged_id_when_we_are_root(server: PostgresServer) -> None:
    status = Path(f"/proc/{server.pid}/status").read_text().splitlines()

    fields = dict(line.split(":", 1) for line in status)
    identity = unprivileged_identity()
    assert identity is not None
    assert {*fields["Uid"].split()} == {str(identity.uid)}
    assert {*fields["Gid"].split()} == {str(identity.gid)}
    assert fields["Groups"].split() == []
    assert int(fields["CapEff"], 16) == 0


def test_start_and_stop_add_no_user_and_change_no_folder() -> None:
    accounts = [Path(name).read_bytes() for name in ("/etc/passwd", "/etc/group")]
    watched = (installed_wheel().programs, Path(tempfile.gettempdir()), Path.cwd())
    modes = modes_above(*watched)

    with PostgresServer() as running:
        running.create_database("anything")

    assert [Path(name).read_bytes() for name in ("/etc/passwd", "/etc/group")] == accounts
    assert "pgserver" not in {entry.pw_name for entry in pwd.getpwall()}
    assert modes_above(*watched) == modes


def test_stop_ends_all_processes_and_removes_the_folder() -> None:
    server = PostgresServer()
    server.start()
    folder, processes = server.folder, family(server.pid)
    assert len(processes) > 1
    assert (folder / "data" / "PG_VERSION").exists()

    server.stop()

    assert alive(processes) == set()
    assert not folder.exists()


def test_stop_twice_is_no_error_and_start_twice_is() -> None:
    with PostgresServer() as server:
        with pytest.raises(Conflict, match="already started"):
            server.start()
        server.stop()
        server.stop()
    with pytest.raises(Unavailable, match="not running"):
        _ = server.pid


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_committed_rows_survive_a_restart(server: PostgresServer, mode: running.StopMode) -> None:
    url = server.create_database(f"restart_{mode}")
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000)")
    before = server.pid

    server.restart(mode)

    assert server.pid != before
    assert alive({before}) == set()
    assert count(url) == 1000


def test_immediate_restart_is_a_crash_with_recovery(server: PostgresServer) -> None:
    log = server.folder / "server.log"
    seen = log.stat().st_size

    server.restart("immediate")

    assert "automatic recovery in progress" in log.read_text()[seen:]


def test_two_servers_run_at_once_and_do_not_share_data(server: PostgresServer) -> None:
    with PostgresServer() as other:
        other.create_database("only_here")

        assert other.port != server.port
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(server.url("only_here"))


def test_settings_are_durable_and_roomy(server: PostgresServer) -> None:
    wanted = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "max_connections": "400",
        "shared_buffers": "256MB",
        "listen_addresses": "127.0.0.1",
        "server_encoding": "UTF8",
        "lc_collate": "C",
    }
    with psycopg.connect(server.url("postgres")) as connection:
        rows = connection.execute("SELECT name, current_setting(name) FROM pg_settings").fetchall()
        collate = connection.execute(
            "SELECT datcollate FROM pg_database WHERE datname = current_database()"
        ).fetchone()

    found = {**dict(rows), "lc_collate": collate and collate[0]}
    assert {name: found[name] for name in wanted} == wanted


def test_server_listens_on_loopback_only(server: PostgresServer) -> None:
    sockets = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()

    port = f":{server.port:04X}"
    listening = [line.split()[1] for line in sockets.splitlines() if line.split()[3] == "0A"]
    assert [address for address in listening if address.endswith(port)] == [f"0100007F{port}"]


def test_port_taken_between_choice_and_bind_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = [int(taken.getsockname()[1]), running.free_port()]
        offered = iter(ports)
        monkeypatch.setattr(running, "free_port", lambda: next(offered))

        with PostgresServer() as server:
            assert server.port == ports[1]


def test_bad_setting_says_what_the_server_said_and_leaves_nothing() -> None:
    server = PostgresServer(settings={"shared_buffers": "nonsense"})

    with pytest.raises(Unavailable, match="shared_buffers") as raised:
        server.start()

    assert raised.value.hint
    with pytest.raises(Unavailable):
        _ = server.folder


def test_server_dies_with_a_killed_starter_and_the_next_removes_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = (
        "from fairlead.clients.postgres.server.running import PostgresServer\n"
        "server = PostgresServer(); server.start()\n"
        "print(server.pid, server.folder, flush=True); input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as starter:
        assert starter.stdout is not None
        pid, folder = starter.stdout.readline().split()
        processes = family(int(pid))

        starter.send_signal(signal.SIGKILL)

    wait_until_gone(processes)
    assert Path(folder).exists()
    monkeypatch.setattr(home, "ABANDONED_AFTER_SECONDS", 0.0)
    with PostgresServer() as next_one:
        assert not Path(folder).exists()
        assert next_one.folder.exists()


def test_forked_child_does_not_stop_its_parents_server(server: PostgresServer) -> None:
    child = PostgresServer()
    child._home, child._process, child._owner = server._home, server._process, os.getpid() + 1

    child.stop()

    assert alive({server.pid}) == {server.pid}
    assert server.folder.exists()


def test_data_is_readable_by_nobody_else(server: PostgresServer) -> None:
    modes = {name: (server.folder / name).stat().st_mode for name in ("data", "socket")}

    assert {name: stat.S_IMODE(mode) for name, mode in modes.items()} == {
        "data": 0o700,
        "socket": 0o700,
    }


@pytest.mark.parametrize(
    ("admin", "expected"),
    [
        ("postgresql://u:p@db:5433/postgres", "postgresql://u:p@db:5433/a%20b"),
        ("postgresql://u@db/x?sslmode=require", "postgresql://u@db/a%20b?sslmode=require"),
        ("postgresql:///x?host=%2Frun%2Fpg", "postgresql:///a%20b?host=%2Frun%2Fpg"),
    ],
)
def test_url_names_the_database_and_keeps_the_rest(admin: str, expected: str) -> None:
    assert Databases(admin).url("a b") == expected


def test_name_with_quotes_is_a_name_and_not_sql(server: PostgresServer) -> None:
    name = 'odd"; DROP DATABASE postgres; --'

    url = server.create_database(name)

    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == (name,)
    server.drop_database(name)
    server.drop_database(name)


def test_drop_takes_a_database_that_is_still_in_use(server: PostgresServer) -> None:
    url = server.create_database("in_use")
    with psycopg.connect(url) as connection:
        server.drop_database("in_use")

        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
