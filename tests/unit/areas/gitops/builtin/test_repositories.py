"""Folders of git's own server, at the revisions that a user may name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.gitops.builtin.repositories import Repositories
from tests import contents

FILES = {
    "deploy/b.yaml": b"b",
    "deploy/a.yml": b"a",
    "deploy/note.md": b"",
    "deploy/sub/c.yaml": b"c",
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return contents.repository(tmp_path / "shop")


@pytest.fixture
def where(repository: Path) -> Iterator[str]:
    with contents.serving_git(repository) as address:
        yield address


@pytest.mark.parametrize("path", ["deploy", "./deploy/", "deploy/."])
async def test_the_manifests_of_one_folder_are_read(
    repository: Path, where: str, path: str
) -> None:
    commit = contents.tag(repository, "v1", FILES)

    assert await Repositories().folder(where, "", path) == (
        commit,
        [("a.yml", b"a"), ("b.yaml", b"b")],
    )


@pytest.mark.parametrize("revision", ["", "main", "v1", "refs/tags/v1"])
async def test_a_branch_a_tag_and_head_are_the_commit_they_are_now(
    repository: Path, where: str, revision: str
) -> None:
    commit = contents.tag(repository, "v1", FILES)

    at, _ = await Repositories().folder(where, revision, "deploy")

    assert at == commit


async def test_a_commit_stays_after_a_push_and_a_branch_moves(repository: Path, where: str) -> None:
    repositories = Repositories()
    contents.git(repository, "config", "uploadpack.allowAnySHA1InWant", "true")
    first = contents.tag(repository, "v1", FILES)
    assert (await repositories.folder(where, "main", "deploy"))[0] == first
    second = contents.tag(repository, "v2", {"deploy/a.yml": b"new"})

    assert (await repositories.folder(where, "main", "deploy"))[1][0] == ("a.yml", b"new")
    assert await repositories.folder(where, first, "deploy") == (
        first,
        [("a.yml", b"a"), ("b.yaml", b"b")],
    )
    assert second != first


@pytest.mark.parametrize("target", ["/etc/passwd", "b.yaml"])
async def test_a_link_is_refused_wherever_it_leads(
    repository: Path, where: str, target: str
) -> None:
    (repository / "deploy").mkdir()
    (repository / "deploy" / "link.yaml").symlink_to(target)
    contents.tag(repository, "v1", FILES)

    with pytest.raises(errors.Rejected, match=r"not a plain file at .*: link.yaml"):
        await Repositories().folder(where, "", "deploy")


async def test_a_folder_that_is_a_link_is_no_folder(repository: Path, where: str) -> None:
    (repository / "deploy").symlink_to("/etc")
    contents.tag(repository, "v1", {"other/a.yaml": b"a"})

    with pytest.raises(errors.NotFound, match="no such file"):
        await Repositories().folder(where, "", "deploy")


@pytest.mark.parametrize(
    ("revision", "path", "why"),
    [
        ("other", "deploy", "no other in"),
        ("", "none", "no such file at"),
        ("f" * 40, "deploy", "git"),
    ],
)
async def test_what_is_not_there_is_told(
    repository: Path, where: str, revision: str, path: str, why: str
) -> None:
    contents.tag(repository, "v1", FILES)

    with pytest.raises(errors.FairleadError, match=why):
        await Repositories().folder(where, revision, path)


async def test_a_file_that_is_too_large_is_refused(repository: Path, where: str) -> None:
    contents.tag(repository, "v1", {"deploy/a.yaml": b"x" * (2**20 + 1)})

    with pytest.raises(errors.Rejected, match="larger than 1048576 bytes"):
        await Repositories().folder(where, "", "deploy")


async def test_no_path_of_this_machine_is_a_repository() -> None:
    with pytest.raises(errors.Rejected, match="not a repository that can be fetched"):
        await Repositories().folder("/srv/git/shop", "", "deploy")
