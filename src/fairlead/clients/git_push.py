"""One file of a branch changed by one commit, made in memory and pushed over HTTP."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dulwich.object_store import BaseObjectStore
from dulwich.objects import ZERO_SHA, Blob, Commit, ObjectID, ShaFile, Tree
from dulwich.pack import pack_objects_to_data
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo

from fairlead import errors, values
from fairlead.clients import credentials, git

_MOST_BYTES = 1024 * 1024
_AUTHOR = b"Fairlead <fairlead@localhost>"


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository, and the token that may push to it."""

    where: str
    token_file: Path | None = field(default=None, repr=False)

    def change(
        self, branch: str, path: str, edit: Callable[[bytes], bytes], message: str, onto: str = ""
    ) -> str | None:
        """The commit that makes it so; None where the file was so already.

        `onto` names another branch that gets the commit, whatever it was before: what somebody is
        asked to merge. It stays where it has the file so already, and goes where there is nothing
        to merge.
        """
        token = credentials.secret(self.token_file) if self.token_file else ""
        ref, here = Ref(f"refs/heads/{branch}".encode()), MemoryRepo()
        target = Ref(f"refs/heads/{onto or branch}".encode())
        with (
            git.translated(self.where, f"branch {branch}"),
            git.http_client(self.where, token) as (client, at),
        ):
            fetched = client.fetch(at, here, determine_wants=_only(ref, target), depth=1)
            head = fetched.refs.get(ref)
            if head is None:
                told = f"no branch {branch} in {values.redacted(self.where)}"
                raise errors.NotFound(told, hint="push it, or check its name")
            before = git.Snapshot(self.where, head.decode(), here.object_store)
            old = before.read(path, _MOST_BYTES)
            new = edit(old)
            there = fetched.refs.get(target)
            if new == old:
                if onto and there is not None:
                    self._push(client, at, (target, there), [])
                return None
            if onto and there is not None and self._has(here.object_store, there, path, new):
                return there.decode()
            made = _commit(here.object_store, head, path, new, message)
            self._push(client, at, (target, there), made)
            return made[-1].id.decode()

    def _has(self, store: BaseObjectStore, at: ObjectID, path: str, data: bytes) -> bool:
        try:
            return git.Snapshot(self.where, at.decode(), store).read(path, _MOST_BYTES) == data
        except (errors.NotFound, errors.Rejected):
            return False

    def _push(
        self, client: Any, at: str, expected: tuple[Ref, ObjectID | None], made: Sequence[ShaFile]
    ) -> None:
        """With nothing made, the branch goes."""
        ref, there = expected

        def update(refs: Mapping[Ref, ObjectID]) -> dict[Ref, ObjectID]:
            # Another may have pushed since: theirs is never written over.
            if refs.get(ref) != there:
                raise self._refused("somebody else pushed")
            return {ref: made[-1].id if made else ZERO_SHA}

        def pack(*_: Any, **__: Any) -> Any:
            return pack_objects_to_data([(each, None) for each in made])

        done = client.send_pack(at.encode(), update, pack)
        if refused := (done.ref_status or {}).get(ref):
            raise self._refused(refused)

    def _refused(self, why: str) -> errors.Unavailable:
        told = f"the git repository did not take a commit: {values.redacted(self.where)}: {why}"
        return errors.Unavailable(told, hint="it is tried again; may the token push there?")


def _only(*wanted: Ref) -> Callable[..., list[ObjectID]]:
    def wants(refs: Mapping[Ref, ObjectID], depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's signature
        return [refs[each] for each in dict.fromkeys(wanted) if each in refs]

    return wants


def _commit(
    store: BaseObjectStore, head: ObjectID, path: str, data: bytes, message: str
) -> list[ShaFile]:
    """All that is new, the commit last."""
    parent = store[head]
    assert isinstance(parent, Commit)
    made: list[ShaFile] = [Blob.from_string(data)]
    tree = _replaced(store, parent.tree, path.encode().split(b"/"), made)
    commit = Commit()
    commit.tree, commit.parents = tree, [head]
    commit.author = commit.committer = _AUTHOR
    commit.author_time = commit.commit_time = int(time.time())
    commit.author_timezone = commit.commit_timezone = 0
    commit.encoding, commit.message = b"UTF-8", message.encode()
    return [*made, commit]


def _replaced(
    store: BaseObjectStore, at: ObjectID, parts: Sequence[bytes], made: list[ShaFile]
) -> ObjectID:
    """The tree with another file at that way; made[0] is the file."""
    tree = store[at]
    assert isinstance(tree, Tree)
    mode, old = tree[parts[0]]
    rest = parts[1:]
    tree[parts[0]] = (mode, _replaced(store, old, rest, made) if rest else made[0].id)
    made.append(tree)
    return tree.id
