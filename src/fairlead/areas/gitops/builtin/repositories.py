"""Folders of repositories at a commit: who is there is asked for, and the last few are kept."""

import asyncio
import posixpath
import re
import stat
from collections import OrderedDict, defaultdict

from dulwich.errors import NotTreeError
from dulwich.objects import ObjectID, SubmoduleEncountered, Tree
from dulwich.refs import Ref

from fairlead import errors, values
from fairlead.areas.gitops.builtin import manifests
from fairlead.clients import git

_COMMIT = re.compile(r"[0-9a-f]{40}")
_KEPT = 4
_SECONDS = 150.0
_MOST_FILE = 1024 * 1024
_MOST_FOLDER = 16 * 1024 * 1024
Files = list[tuple[str, bytes]]


class Repositories:
    """Repositories over HTTP, one request at a time for each."""

    def __init__(self) -> None:
        self._snapshots: OrderedDict[tuple[str, str], git.Snapshot] = OrderedDict()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def folder(self, where: str, revision: str, path: str) -> tuple[str, Files]:
        """The commit that the branch, tag or commit is now, and the manifests in the folder."""
        async with self._turns[where], asyncio.timeout(_SECONDS):
            pointed = await asyncio.to_thread(_pointed, where, revision)
            snapshot = self._snapshots.get((where, pointed))
            if snapshot is None:
                snapshot = await asyncio.to_thread(_fetched, where, pointed)
            self._keep(where, pointed, snapshot)
            return snapshot.at, await asyncio.to_thread(_read, snapshot, path)

    def _keep(self, where: str, pointed: str, snapshot: git.Snapshot) -> None:
        self._snapshots[where, pointed] = snapshot
        self._snapshots.move_to_end((where, pointed))
        if len(self._snapshots) > _KEPT:
            self._snapshots.popitem(last=False)


def _pointed(where: str, revision: str) -> str:
    """What the remote says it is, by one request; a whole commit needs none."""
    if _COMMIT.fullmatch(revision):
        return revision
    with git.translated(where, revision or "HEAD"), git.http_client(where) as (client, path):
        refs = dict(client.get_refs(path.encode()).refs)
    names = [f"refs/heads/{revision}", f"refs/tags/{revision}", revision] if revision else ["HEAD"]
    for name in names:
        found = refs.get(Ref(name.encode()))
        if found is not None:
            return bytes(found).decode()
    raise errors.NotFound(
        f"no {revision[:80] or 'HEAD'} in {values.redacted(where)}",
        hint="push it, or check spec.source.targetRevision",
    )


def _fetched(where: str, pointed: str) -> git.Snapshot:
    found = git.snapshot(where, pointed)
    with git.translated(where, pointed[:12]):
        # A tag may point at a tag; the commit is what a person knows.
        at = git.commit(found.store, ObjectID(pointed.encode()), pointed[:12]).id.decode()
    return git.Snapshot(where, at, found.store)


def _read(snapshot: git.Snapshot, path: str) -> Files:
    """Plain files in this very folder; a link is refused, wherever it leads."""
    room = _MOST_FOLDER
    found: Files = []
    with git.translated(snapshot.where, snapshot.at[:12]):
        tree = _tree(snapshot, path)
        entries = [(it.path.decode("utf-8", "replace"), it) for it in tree.iteritems()]
        manifests.check_names(name for name, _ in entries)
        for name, it in entries:
            if not name.endswith(manifests.ENDINGS) or stat.S_ISDIR(it.mode):
                continue
            if not stat.S_ISREG(it.mode):
                raise errors.Rejected(
                    f"not a plain file at {snapshot.at[:12]}: {name}", hint="commit a file"
                )
            data = git.bounded(snapshot.store[it.sha].as_raw_string(), name, _MOST_FILE)
            room -= len(data)
            if room < 0:
                raise errors.Rejected(
                    f"the folder is larger than {_MOST_FOLDER // 2**20} MiB: {path}",
                    hint="split it into several deployments",
                )
            found.append((name, data))
    return found


def _tree(snapshot: git.Snapshot, path: str) -> Tree:
    commit = git.commit(snapshot.store, ObjectID(snapshot.at.encode()), snapshot.at[:12])
    root = snapshot.store[commit.tree]
    assert isinstance(root, Tree)
    inside = posixpath.normpath(path)
    if inside == ".":
        return root
    try:
        _, sha = root.lookup_path(snapshot.store.__getitem__, inside.encode())
        found = snapshot.store[sha]
    except (KeyError, NotTreeError, SubmoduleEncountered) as error:
        raise git.missing_file(path, snapshot.at) from error
    if not isinstance(found, Tree):
        raise git.missing_file(path, snapshot.at)
    return found
