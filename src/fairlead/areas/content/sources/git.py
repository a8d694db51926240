"""Versions as tags of a git repository, local or over HTTP, fetched whole into memory."""

import stat
from collections.abc import Iterator

from dulwich.object_store import BaseObjectStore
from dulwich.objects import ObjectID, Tree
from dulwich.refs import Ref

from fairlead import errors, values
from fairlead.areas.content.sources import limits
from fairlead.clients import git


def read(where: str, tag: str, version: str) -> tuple[str, dict[str, bytes]]:
    """The commit that the tag names now, and the files of it."""
    with git.translated(where, f"tag {tag}"):
        store, pointed = git.fetch(where, Ref(b"refs/tags/" + tag.encode()))
        if pointed is None:
            raise errors.NotFound(
                f"version not found: {version}: no tag {tag} in {values.redacted(where)}",
                hint="push the tag, or check the version's name",
            )
        commit = git.commit(store, pointed, tag)
        return commit.id.decode(), limits.collect(version, _walk(store, commit.tree, version))


def _walk(
    store: BaseObjectStore, tree: ObjectID, version: str, above: str = ""
) -> Iterator[tuple[str, bytes]]:
    found = store[tree]
    assert isinstance(found, Tree)
    for name, mode, sha in found.iteritems():
        path = above + name.decode("utf-8", "surrogateescape")
        limits.check_path(version, path)
        if stat.S_ISDIR(mode):
            yield from _walk(store, sha, version, f"{path}/")
        elif stat.S_ISREG(mode):
            yield path, store[sha].as_raw_string()
        else:
            raise limits.no_link(version, path)
