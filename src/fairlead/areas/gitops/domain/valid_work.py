"""The checks that an intent must pass to become work; pure, for admission and the machine alike.

A field with characters that do not belong there is refused, never stripped: that would change what
the user asked for without a word.
"""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from fairlead.areas.gitops.domain.messages import AUTOMATED, MANUAL, Intent

Problem = tuple[str, str]
SYNC_OPTIONS = ("CreateNamespace=true", "CreateNamespace=false")
_LONGEST_URL = 2000
_LONGEST = 1000
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/@+-]*")


def problems(intent: Intent) -> Iterator[Problem]:
    """Pairs of a field and what is wrong with it; none for valid work."""
    yield from _repository(intent.repo_url)
    yield from _path(intent.path)
    revision = intent.target_revision
    if revision and (not _REVISION.fullmatch(revision) or ".." in revision):
        yield "spec.source.targetRevision", "not a branch, tag or commit"
    if intent.type not in (AUTOMATED, MANUAL):
        yield "spec.type", f"must be {AUTOMATED} or {MANUAL}"
    for option in intent.sync_options:
        if option not in SYNC_OPTIONS:
            told = f"the specified sync option is either mistyped or unsupported: {option[:80]}"
            yield "spec.syncPolicy.syncOptions", told
    if intent.namespace and not intent.environment:
        yield "spec.destination.environment", "must be set where destination.namespace is"


def unserved(intent: Intent) -> Iterator[Problem]:
    """What the document has and this installation does not serve yet."""
    if intent.environment:
        yield "spec.destination.environment", "managed environments are not served yet"


def _repository(url: str) -> Iterator[Problem]:
    at = "spec.source.repoURL"
    if not url.isprintable() or " " in url or len(url) > _LONGEST_URL:
        yield at, "not the address of a repository"
        return
    try:
        parsed = urlsplit(url)
        host = parsed.hostname
    except ValueError:
        yield at, "not the address of a repository"
        return
    if parsed.scheme not in ("http", "https") or not host:
        yield at, "must be an address that starts with https:// or http://"
    elif parsed.username or parsed.password:
        yield at, "must not hold a password: everybody who reads the object would know it"


def _path(path: str) -> Iterator[Problem]:
    at = "spec.source.path"
    if not path:
        yield at, "spec.source.path is a required field and it cannot be empty"
    elif path == "/":
        yield at, "spec.source.path cannot be '/'"
    elif not path.isprintable() or len(path) > _LONGEST or path.startswith("/"):
        yield at, "must be a folder of the repository, without a slash in front"
    elif ".." in path.split("/"):
        yield at, "must not lead out of the repository"
