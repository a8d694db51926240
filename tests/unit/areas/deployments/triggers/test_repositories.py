"""Where repositories are comes from the settings, and tokens go nowhere else."""

from pathlib import Path

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.trigger.messages import Source
from fairlead.areas.deployments.triggers.repositories import GitHost, Repositories
from fairlead.clients.github import Account, GitHub
from tests import contents

FILES = {"a.yaml": b"a", "b.yaml": b"b"}


def hosted(folder: Path) -> Path:
    (folder / "acme").mkdir()
    return contents.repository(folder / "acme" / "work")


def served(folder: Path, repository: Path) -> None:
    contents.git(folder, "clone", "-q", "--bare", str(repository), "acme/shop.git")


async def test_files_of_one_commit_are_fetched_once(tmp_path: Path) -> None:
    work = hosted(tmp_path)
    commit = contents.tag(work, "v1", FILES)
    served(tmp_path, work)
    with contents.serving_git(tmp_path) as address:
        host = GitHost(address.removesuffix("/.git"))
        repositories = Repositories(GitHub(Account()), {"gitlab": host})
        source = Source("gitlab", "acme/shop", "refs/tags/v1", commit)

        assert await repositories.resolve(source) == commit
        assert await repositories.read(source, "a.yaml") == b"a"

    # The server is gone; what was fetched is still known.
    assert await repositories.read(source, "b.yaml") == b"b"


def test_a_token_is_put_into_the_address_that_is_set(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("glpat/@:x")
    host = GitHost("https://git.example/base/", tmp_path / "token")

    assert host.address("a/b") == "https://oauth2:glpat%2F%40%3Ax@git.example/base/a/b.git"


@pytest.mark.parametrize("url", ["ftp://x", "/srv/git", "https://me:x@git.example", "https://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(errors.Rejected, match="not an address of a git server"):
        GitHost(url).address("a/b")


async def test_a_host_without_an_address_is_told() -> None:
    repositories = Repositories(GitHub(Account()), {"gitea": GitHost("")})

    with pytest.raises(errors.Rejected, match="no address is set for: gitea") as refused:
        await repositories.read(Source("gitea", "a/b", "", "c" * 40), "a.yaml")

    assert "FAIRLEAD_DEPLOYMENTS_GITEA_URL" in refused.value.hint


async def test_a_server_that_is_away_is_told_without_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("glpat-very-secret")
    host = GitHost("http://127.0.0.1:9", tmp_path / "token")
    repositories = Repositories(GitHub(Account()), {"gitlab": host})

    with pytest.raises(errors.Unavailable, match="did not answer") as away:
        await repositories.read(Source("gitlab", "a/b", "", "c" * 40), "a.yaml")

    assert "very-secret" not in f"{away.value.message} {away.value.hint}"


async def test_every_sql_file_of_a_folder_comes_along_and_no_way_back(tmp_path: Path) -> None:
    """More of them than are read at once."""
    work = hosted(tmp_path)
    wanted = {f"{n:04}_a.sql": f"SELECT {n}" for n in range(19)}
    beside = {"0001_a.down.sql": "no", "notes.md": "no"}
    commit = contents.tag(
        work, "v1", {f"sql/{name}": text.encode() for name, text in (wanted | beside).items()}
    )
    served(tmp_path, work)
    with contents.serving_git(tmp_path) as address:
        host = GitHost(address.removesuffix("/.git"))
        repositories = Repositories(GitHub(Account()), {"gitlab": host})

        found = await repositories.migrations(Source("gitlab", "acme/shop", "", commit), "sql")

    assert found == wanted
    assert list(found) == sorted(wanted)
