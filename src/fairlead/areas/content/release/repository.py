"""The two variables in a file of a git repository, from where somebody else applies them.

What reviews a release in Fairlead is its approval, so the change is pushed to the branch itself.
"""

import asyncio
import functools
import re

from fairlead import errors
from fairlead.areas.content.domain.release.place import GitFile, Versions
from fairlead.clients.git_push import Remote

_HINT = "write STABLE_VERSION and CANARY_VERSION once each, as NAME: VALUE or name and value below"


class Repository:
    """The one repository of this installation."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    async def write(self, name: str, at: GitFile, versions: Versions) -> None:
        """Both variables by one commit; nothing where the file says so already."""
        message = f"{name}: stable {versions.stable}, canary {versions.canary}\n"
        await asyncio.to_thread(
            self._remote.change, at.branch, at.file, lambda old: edited(old, versions), message
        )


def edited(text: bytes, versions: Versions) -> bytes:
    """The same text with other versions; Rejected where it is not plain which values they are."""
    for name, value in (("STABLE_VERSION", versions.stable), ("CANARY_VERSION", versions.canary)):
        text, count = _pattern(name).subn(functools.partial(_with, value=value), text)
        if count != 1:
            raise errors.Rejected(f"{name} stands {count} times in the file, not once", hint=_HINT)
    return text


def _pattern(name: str) -> re.Pattern[bytes]:
    """`NAME: value`, `NAME=value`, or Kubernetes' `name: NAME` with `value: …` in the next line."""
    pair = rf"(?:- +)?{name}(?:: +|=)"
    entry = rf"- +name: +[\"']?{name}[\"']?[ \t]*\n[ \t]+value: +"
    value = r"(?P<quote>[\"']?)[A-Za-z0-9._+-]+(?P=quote)"
    return re.compile(
        rf"(?P<head>^[ \t]*(?:{pair}|{entry})){value}(?=[ \t]*(?:#.*)?$)".encode(), re.MULTILINE
    )


def _with(found: re.Match[bytes], value: str) -> bytes:
    head, quote = found["head"], found["quote"]
    # Without quotes, YAML would take 1.10 for a number.
    quote = quote or (b"" if head.endswith(b"=") else b'"')
    return head + quote + value.encode() + quote
