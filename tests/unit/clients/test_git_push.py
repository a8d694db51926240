"""One file changed by one commit, on a branch of git's own server over HTTP."""

import gc
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.clients.git_push import Remote
from tests import contents

FILE = "clusters/production/content.yaml"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    made = contents.repository(tmp_path / "ops")
    contents.tag(made, "1", {FILE: b"old", "clusters/other.yaml": b"kept", "README": b"kept"})
    contents.accept_pushes(made)
    return made


@pytest.fixture
def where(repository: Path) -> Iterator[str]:
    with contents.serving_git(repository) as address:
        yield address


def test_a_commit_changes_the_file_and_nothing_else(repository: Path, where: str) -> None:
    before = contents.git(repository, "rev-parse", "main")

    made = Remote(where).change("main", FILE, lambda old: old + b", new", "g: stable 1.0.2\n")

    assert made == contents.git(repository, "rev-parse", "main")
    assert contents.git(repository, "rev-parse", "main^") == before
    assert contents.git(repository, "show", f"main:{FILE}") == "old, new"
    assert contents.git(repository, "diff", "--name-only", "main^", "main") == FILE
    assert contents.git(repository, "log", "-1", "--format=%s by %an", "main") == (
        "g: stable 1.0.2 by Fairlead"
    )
    assert contents.git(repository, "fsck", "--strict") == ""


def test_what_is_so_already_makes_no_commit(repository: Path, where: str) -> None:
    before = contents.git(repository, "rev-parse", "main")

    assert Remote(where).change("main", FILE, lambda old: old, "nothing") is None
    assert contents.git(repository, "rev-parse", "main") == before


def test_the_commit_of_another_is_never_written_over(repository: Path, where: str) -> None:
    def meanwhile(_: bytes) -> bytes:
        contents.tag(repository, "2", {"README": b"theirs"})
        return b"ours"

    with pytest.raises(errors.Unavailable, match="somebody else pushed"):
        Remote(where).change("main", FILE, meanwhile, "late")

    assert contents.git(repository, "show", "main:README") == "theirs"
    assert contents.git(repository, "show", f"main:{FILE}") == "old"


@pytest.mark.parametrize(
    ("branch", "file", "said"), [("gone", FILE, "no branch gone"), ("main", "gone", "no such file")]
)
def test_a_branch_or_file_that_is_not_there_is_told(
    where: str, branch: str, file: str, said: str
) -> None:
    with pytest.raises(errors.NotFound, match=said):
        Remote(where).change(branch, file, lambda old: old, "nothing")


def test_who_may_not_push_is_told_without_the_token(
    repository: Path, where: str, tmp_path: Path
) -> None:
    contents.git(repository, "config", "http.receivepack", "false")
    (tmp_path / "token").write_text("secret-of-a-test")

    with pytest.raises(errors.Unavailable) as told:
        Remote(where, tmp_path / "token").change("main", FILE, lambda _: b"new", "no")

    assert "secret-of-a-test" not in f"{told.value}{told.value.hint}"
    # dulwich leaves the refused answer to the collector, which would tell a later test of it.
    told.value.__cause__ = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        del told
        gc.collect()


def test_what_somebody_shall_merge_goes_to_a_branch_of_its_own(
    repository: Path, where: str
) -> None:
    before, side = contents.git(repository, "rev-parse", "main"), "fairlead/gathering"

    made, again = (
        Remote(where).change("main", FILE, lambda _: b"new", "g: stable 1.0.2\n", side)
        for _ in range(2)
    )

    assert made == again == contents.git(repository, "rev-parse", side)
    assert contents.git(repository, "rev-parse", "main", f"{side}^").split() == [before, before]
    newer = Remote(where).change("main", FILE, lambda _: b"newer", "g: stable 1.0.3\n", side)
    assert newer == contents.git(repository, "rev-parse", side)
    assert contents.git(repository, "rev-parse", f"{side}^") == before


def test_a_branch_with_nothing_to_merge_goes(repository: Path, where: str) -> None:
    side = "fairlead/gathering"
    Remote(where).change("main", FILE, lambda _: b"new", "g: stable 1.0.2\n", side)

    for _ in range(2):
        assert Remote(where).change("main", FILE, lambda old: old, "nothing", side) is None

    assert contents.git(repository, "branch", "--format=%(refname:short)") == "main"
