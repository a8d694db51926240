"""One file at a commit, and the commit of a branch or tag, of git's own server over HTTP."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients import git
from tests import contents

FILE = "deploy/shop.yaml"
MOST = 1000


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return contents.repository(tmp_path / "shop")


@pytest.fixture
def where(repository: Path) -> Iterator[str]:
    with contents.serving_git(repository) as address:
        yield address


def test_a_file_is_read_at_its_commit_also_after_a_force_push(repository: Path, where: str) -> None:
    first = contents.tag(repository, "1", {FILE: b"one"})
    second = contents.tag(repository, "2", {FILE: b"two"})
    contents.git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")

    assert git.snapshot(where, second).read(FILE, MOST) == b"two"
    contents.git(repository, "reset", "-q", "--hard", first)
    contents.git(repository, "tag", "-d", "2")
    assert git.snapshot(where, first).read(FILE, MOST) == b"one"
    assert git.snapshot(where, second).read(FILE, MOST) == b"two"


def test_a_branch_and_both_kinds_of_tag_are_commits(repository: Path, where: str) -> None:
    commit = contents.tag(repository, "v1", {FILE: b"one"})
    contents.git(repository, "tag", "light")

    found = {git.resolve(where, f"refs/{each}") for each in ("heads/main", "tags/v1", "tags/light")}

    assert found == {commit}
    with pytest.raises(errors.NotFound, match="no heads/other in"):
        git.resolve(where, "refs/heads/other")


@pytest.mark.parametrize("path", ["deploy/none.yaml", "none/shop.yaml", f"{FILE}/below"])
def test_a_missing_file_is_told_with_its_commit(repository: Path, where: str, path: str) -> None:
    commit = contents.tag(repository, "1", {FILE: b"one"})

    with pytest.raises(errors.NotFound, match=f"no such file at {commit[:12]}: {path}"):
        git.snapshot(where, commit).read(path, MOST)


def test_what_is_no_plain_file_or_too_large_is_refused(repository: Path, where: str) -> None:
    (repository / "link").symlink_to("/etc/passwd")
    commit = contents.tag(repository, "1", {FILE: b"x" * (MOST + 1)})

    with pytest.raises(errors.Rejected, match="not a plain file"):
        git.snapshot(where, commit).read("link", MOST)
    with pytest.raises(errors.Rejected, match="not a plain file"):
        git.snapshot(where, commit).read("deploy", MOST)
    with pytest.raises(errors.Rejected, match="larger than 1000 bytes"):
        git.snapshot(where, commit).read(FILE, MOST)


def test_a_commit_that_is_not_there_is_told(repository: Path, where: str) -> None:
    contents.tag(repository, "1", {FILE: b"one"})

    with pytest.raises(errors.FairleadError, match="git repository"):
        git.snapshot(where, "f" * 40).read(FILE, MOST)
