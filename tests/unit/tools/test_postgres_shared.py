"""One server for a whole run: started once, ended by the last, whatever happens to the others."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from fairlead.clients.postgres.server.running import Databases
from tools.servers.postgres_shared import shared_server

ROOT = Path(__file__).resolve().parents[3]
USER = (
    "import sys, pathlib\n"
    "from tools.servers.postgres_shared import shared_server\n"
    "with shared_server(pathlib.Path(sys.argv[1])) as databases:\n"
    "    print(databases.admin_url, flush=True)\n"
    "    sys.stdin.read()\n"
)


@contextmanager
def user(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Another process that uses the server until its input is closed."""
    command = [sys.executable, "-c", USER, str(folder)]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()


def answers(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def wait_until_silent(url: str) -> None:
    deadline = time.monotonic() + 20
    while answers(url) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not answers(url)


def test_users_of_one_folder_share_one_server_until_the_last_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with user(folder) as (first, url):
        with shared_server(folder) as databases:
            assert databases.admin_url == url
            assert first.stdin is not None
            first.stdin.close()

            # The first has started the server and wants to leave; we still need it.
            assert answers(url)

        assert first.wait(20) == 0

    assert not answers(url)


def test_killed_starter_leaves_the_server_to_the_others_and_then_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with user(folder) as (starter, url), shared_server(folder) as databases:
        starter.kill()
        starter.wait()

        assert databases.admin_url == url
        assert answers(url)

    wait_until_silent(url)


def test_newcomer_after_the_last_has_left_gets_a_new_server(tmp_path: Path) -> None:
    with shared_server(tmp_path / "run") as databases:
        first = databases.admin_url

    with shared_server(tmp_path / "run") as databases:
        assert answers(databases.admin_url)

    assert not answers(first)


def test_run_has_one_server_and_each_test_an_empty_database(
    postgres_server: Databases, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url) as connection:
        tables = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ).fetchone()
        name = connection.execute("SELECT current_database()").fetchone()

    assert tables == (0,)
    assert name is not None
    assert postgres_url == postgres_server.url(name[0])


def test_given_url_is_used_instead_and_left_as_it_was(
    postgres_server: Databases, tmp_path: Path
) -> None:
    given = {"FAIRLEAD_TEST_POSTGRES_URL": postgres_server.admin_url}

    inner_run(tmp_path, "-n0", given)

    seen = seen_urls(tmp_path)
    assert {Databases(url).url("postgres") for url in seen} == {postgres_server.url("postgres")}
    assert answers(postgres_server.admin_url)
    assert not any(answers(url) for url in seen)


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_run_starts_one_server_and_ends_it(tmp_path: Path, workers: str) -> None:
    inner_run(tmp_path, workers, {})

    seen = seen_urls(tmp_path)
    assert len(seen) == 4
    servers = {Databases(url).url("postgres") for url in seen}
    assert len(servers) == 1
    assert not answers(servers.pop())


def inner_run(folder: Path, workers: str, environment: dict[str, str]) -> None:
    """A pytest run of its own, with our fixtures, on four tests that note their URL."""
    inner = folder / "test_inner.py"
    inner.write_text(
        "import pathlib, pytest\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_url(postgres_url, n):\n"
        "    pathlib.Path(__file__).with_name(f'seen-{n}').write_text(postgres_url)\n"
    )
    outer = ("PYTEST_", "FAIRLEAD_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    options = ("-q", workers, "-p", "tests.postgres", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--basetemp={folder / 'base'}", str(inner)],
        cwd=ROOT,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def seen_urls(folder: Path) -> set[str]:
    return {path.read_text() for path in folder.glob("seen-*")}
