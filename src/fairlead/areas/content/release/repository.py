"""The two variables in a file of a git repository, from where somebody else applies them.

What reviews a release in Fairlead is its approval, so the change is pushed to the branch itself;
where only pull requests may change that, one is opened, and closed when it is no longer wanted.
"""

import asyncio
import contextlib
import functools
import re
from collections.abc import AsyncIterator, Mapping

from fairlead import errors
from fairlead.areas.content.domain.release.place import GitFile, Versions
from fairlead.areas.content.release import shares
from fairlead.areas.content.release.kubernetes import COMMITS
from fairlead.areas.content.release.ports import Observed, Progress
from fairlead.clients.git_push import Remote
from fairlead.clients.pull_requests import Merge, PullRequests

_VERSION = r"(?P<quote>[\"']?)[A-Za-z0-9._+-]+(?P=quote)"
_COMMITS = r"(?P<quote>[\"'])[A-Za-z0-9._+= -]*(?P=quote)"
_HINT = "write STABLE_VERSION and CANARY_VERSION once each, as NAME: VALUE or name and value below"


class Repository:
    """The one repository of this installation; used inside `open`."""

    def __init__(self, remote: Remote, requests: PullRequests | None = None) -> None:
        self._remote = remote
        self._requests = requests

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._requests.open() if self._requests else contextlib.nullcontext():
            yield

    async def write(
        self, name: str, at: GitFile, versions: Versions, commits: Mapping[str, str]
    ) -> Observed | None:
        """Both variables by one commit, and what it waits for; None where the branch has them."""
        told = f"{name}: stable {versions.stable}, canary {versions.canary}"
        onto = f"fairlead/{shares.stem(name)}" if self._requests else ""

        def change() -> str | None:
            edit = functools.partial(edited, versions=versions, pinned=versions.pinned(commits))
            return self._remote.change(at.branch, at.file, edit, f"{told}\n", onto)

        commit = await asyncio.to_thread(change)
        if self._requests is None:
            return None
        asked = Merge(onto, at.branch, told)
        if commit is None:
            # Merged later, one of before would deploy what nobody wants any more.
            await self._requests.close(asked)
            return None
        stands = await self._requests.ensure(asked, commit)
        if stands.refused:
            return Observed(Progress.FAILED, f"closed and not merged: {stands.url}")
        return Observed(Progress.WAITING, f"not merged yet: {stands.url}")


def edited(text: bytes, versions: Versions, pinned: str) -> bytes:
    """The same text with other versions; Rejected where it is not plain which values they are.

    Commits are written where the file has a variable for them; it stands in quotes there.
    """
    for name, value in (("STABLE_VERSION", versions.stable), ("CANARY_VERSION", versions.canary)):
        text, count = _pattern(name, _VERSION).subn(functools.partial(_with, value=value), text)
        if count != 1:
            raise errors.Rejected(f"{name} stands {count} times in the file, not once", hint=_HINT)
    return _pattern(COMMITS, _COMMITS).sub(functools.partial(_with, value=pinned), text)


def _pattern(name: str, value: str) -> re.Pattern[bytes]:
    """`NAME: value`, `NAME=value`, or Kubernetes' `name: NAME` with `value: …` in the next line."""
    pair = rf"(?:- +)?{name}(?:: +|=)"
    entry = rf"- +name: +[\"']?{name}[\"']?[ \t]*\n[ \t]+value: +"
    return re.compile(
        rf"(?P<head>^[ \t]*(?:{pair}|{entry})){value}(?=[ \t]*(?:#.*)?$)".encode(), re.MULTILINE
    )


def _with(found: re.Match[bytes], value: str) -> bytes:
    head, quote = found["head"], found["quote"]
    # Without quotes, YAML would take 1.10 for a number.
    quote = quote or (b"" if head.endswith(b"=") else b'"')
    return head + quote + value.encode() + quote
