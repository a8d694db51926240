"""Versions as tags: of a repository on this machine, and of git's own server over HTTP."""

import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.content.sources import git
from tests import contents

FILES = {"a.json": b"1", "sub/b.json": b"2"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return contents.repository(tmp_path / "conditions")


@pytest.fixture(params=["local", "http"])
def where(request: pytest.FixtureRequest, repository: Path) -> Iterator[str]:
    """The repository as a path, and behind git's HTTP backend."""
    if request.param == "local":
        yield str(repository)
        return
    with contents.serving_git(repository) as address:
        yield address


def test_a_tag_is_a_version(repository: Path, where: str) -> None:
    commit = contents.tag(repository, "1.0.1", FILES)
    contents.tag(repository, "1.0.2", {"a.json": b"newer"})

    assert git.read(where, "1.0.1", "1.0.1") == (commit, FILES)


def test_a_tag_without_a_message_is_one_too(repository: Path, where: str) -> None:
    commit = contents.tag(repository, "1.0.1", FILES)
    contents.git(repository, "tag", "v2")

    assert git.read(where, "v2", "2") == (commit, FILES)


@pytest.mark.requirement("content 4")
def test_a_missing_tag_is_a_missing_version(repository: Path, where: str) -> None:
    contents.tag(repository, "1.0.1", FILES)

    with pytest.raises(errors.NotFound, match=r"version not found: 1.0.2: no tag 1.0.2"):
        git.read(where, "1.0.2", "1.0.2")


def test_a_link_in_a_tag_is_refused(repository: Path, where: str) -> None:
    (repository / "link").symlink_to("/etc/passwd")
    contents.tag(repository, "1.0.1", FILES)

    with pytest.raises(errors.Rejected, match=r"not a plain file in version 1.0.1: 'link'"):
        git.read(where, "1.0.1", "1.0.1")


def test_a_tag_of_no_commit_is_refused(repository: Path, where: str) -> None:
    contents.tag(repository, "1.0.1", FILES)
    contents.git(repository, "tag", "blob", "HEAD:a.json")

    with pytest.raises(errors.Rejected, match="the tag names no commit: blob"):
        git.read(where, "blob", "blob")


def test_a_server_that_is_away_is_unavailable_and_its_password_is_not_told() -> None:
    with pytest.raises(errors.Unavailable, match="did not answer") as failed:
        git.read("http://rules:secret@127.0.0.1:9/conditions.git", "1", "1")

    assert "secret" not in str(failed.value)


def test_a_server_that_says_nothing_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead.clients.git._PATIENCE_SECONDS", 0.2)

    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"http://127.0.0.1:{silent.getsockname()[1]}/rules.git"
        with pytest.raises(errors.Unavailable, match="did not answer"):
            git.read(where, "1.0.2", "1.0.2")


def test_a_server_that_drips_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fairlead.clients.git._WHOLE_SECONDS", 0.5)

    with dripping() as where, pytest.raises(errors.Unavailable, match="did not answer"):
        git.read(where, "1.0.2", "1.0.2")


def test_a_repository_without_end_fills_no_memory(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents.tag(repository, "1.0.1", {"a.json": os.urandom(200_000)})
    contents.tag(repository, "1.0.2", {"a.json": b" " * 300_000})
    monkeypatch.setattr("fairlead.clients.git._MOST_BYTES", 100_000)
    monkeypatch.setattr("fairlead.clients.git._Client._room", 100_000)

    with contents.serving_git(repository) as where:
        # The one as it comes, the other when it is unpacked.
        for version in ("1.0.1", "1.0.2"):
            with pytest.raises(errors.Rejected, match="repository is too large"):
                git.read(where, version, version)


def test_an_address_without_a_repository_is_told(repository: Path) -> None:
    with (
        contents.serving_git(repository) as address,
        pytest.raises(errors.Unavailable, match="did not answer"),
    ):
        git.read(f"{address}/elsewhere", "1", "1")


def test_a_folder_that_is_no_repository_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFound, match="not a git repository"):
        git.read(str(tmp_path), "1", "1")


def test_only_paths_and_http_are_fetched() -> None:
    with pytest.raises(errors.Rejected, match="can be fetched"):
        git.read("ssh://git@example.test/conditions", "1", "1")


@contextlib.contextmanager
def dripping() -> Iterator[str]:
    """A server whose answers come byte by byte, each well within the patience of one read."""
    over = threading.Event()

    class Dripping(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(b"fff0")
                while not over.wait(0.01):
                    self.wfile.write(b"x")
                    self.wfile.flush()

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Dripping) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/rules.git"
        finally:
            over.set()
            server.shutdown()
            thread.join()
