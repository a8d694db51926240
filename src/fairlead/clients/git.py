"""Git repositories on this machine or over HTTP; what is fetched is kept in memory."""

import contextlib
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from dulwich import client as clients
from dulwich import errors as git_errors
from dulwich.object_store import BaseObjectStore, MemoryObjectStore
from dulwich.objects import Commit, ObjectID, ShaFile, SubmoduleEncountered, Tag, Tree
from dulwich.refs import Ref
from dulwich.repo import MemoryRepo, Repo

from fairlead import errors, values

_MOST_TAGS = 10
_PATIENCE_SECONDS = 30.0
_WHOLE_SECONDS = 120.0
_MOST_BYTES = 128 * 1024 * 1024
"""Of one fetch, as it comes and unpacked: all of it is held in memory."""

_SCHEMES = ("http://", "https://")


def fetch(where: str, wanted: Ref) -> tuple[BaseObjectStore, ObjectID | None]:
    """What the ref names now, with its files; None where there is no such ref."""
    return _local(where, wanted) if "://" not in where else _remote(where, wanted)


def resolve(where: str, ref: str) -> str:
    """The commit that a branch or tag is now; NotFound where there is none of that name."""
    with translated(where, ref):
        store, pointed = fetch(where, Ref(ref.encode()))
        if pointed is None:
            told = f"no {ref.removeprefix('refs/')[:80]} in {values.redacted(where)}"
            raise errors.NotFound(told, hint="push it, or check its name")
        return commit(store, pointed, ref).id.decode()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository at one commit."""

    where: str
    at: str
    store: BaseObjectStore

    def read(self, path: str, most: int) -> bytes:
        """A plain file of it; NotFound where there is none."""
        with translated(self.where, f"commit {self.at[:12]}"):
            mode, sha = self._found(path)
            if not stat.S_ISREG(mode):
                told = f"not a plain file at {self.at[:12]}: {path}"
                raise errors.Rejected(told, hint="commit a file")
            return bounded(self.store[sha].as_raw_string(), path, most)

    def names(self, path: str) -> list[str]:
        """Of the plain files in a folder of it; NotFound where there is none."""
        with translated(self.where, f"commit {self.at[:12]}"):
            tree = self.store[self._found(path)[1]]
            if not isinstance(tree, Tree):
                raise missing_file(path, self.at)
            return [it.path.decode() for it in tree.iteritems() if stat.S_ISREG(it.mode)]

    def _found(self, path: str) -> tuple[int, ObjectID]:
        tree = self.store[commit(self.store, ObjectID(self.at.encode()), self.at[:12]).tree]
        assert isinstance(tree, Tree)
        try:
            return tree.lookup_path(self.store.__getitem__, path.encode())
        except (KeyError, git_errors.NotTreeError, SubmoduleEncountered) as error:
            raise missing_file(path, self.at) from error


def snapshot(where: str, at: str) -> Snapshot:
    """A repository over HTTP as it was at a commit, with all of its files."""
    with translated(where, f"commit {at[:12]}"):
        store, _ = _fetched(where, lambda _: [ObjectID(at.encode())])
    return Snapshot(where, at, store)


def missing_file(path: str, at: str) -> errors.NotFound:
    return errors.NotFound(f"no such file at {at[:12]}: {path}", hint="check the target's path")


def bounded(data: bytes, path: str, most: int) -> bytes:
    """The content of a file; Rejected where it is too large."""
    if len(data) > most:
        raise errors.Rejected(f"larger than {most} bytes: {path}", hint="make it smaller")
    return data


@contextlib.contextmanager
def translated(where: str, at: str) -> Iterator[None]:
    """Around all that reads a repository: what goes wrong, as an error of ours."""
    try:
        yield
    except (git_errors.GitProtocolError, git_errors.NotGitRepository, OSError) as error:
        raise errors.Unavailable(
            f"the git repository did not answer: {_told(where, error)}",
            hint="check its address, the network and the rights to read it",
        ) from error
    except (git_errors.ObjectFormatException, git_errors.ChecksumMismatch, KeyError) as error:
        raise errors.Rejected(
            f"the git repository is damaged at {at}: {str(error)[:200]}",
            hint="check it with git fsck",
        ) from error


def commit(store: BaseObjectStore, pointed: ObjectID, at: str) -> Commit:
    """The commit that is pointed at, also through tags."""
    found: ShaFile = store[pointed]
    for _ in range(_MOST_TAGS):
        if not isinstance(found, Tag):
            break
        found = store[found.object[1]]
    if not isinstance(found, Commit):
        raise errors.Rejected(f"the tag names no commit: {at}", hint="tag a commit")
    return found


def _local(where: str, wanted: Ref) -> tuple[BaseObjectStore, ObjectID | None]:
    try:
        repository = Repo(str(Path(where).expanduser()))
    except git_errors.NotGitRepository as error:
        raise errors.NotFound(f"not a git repository: {where}", hint="check its path") from error
    return repository.object_store, repository.refs.as_dict().get(wanted)


def _remote(where: str, wanted: Ref) -> tuple[BaseObjectStore, ObjectID | None]:
    store, refs = _fetched(where, lambda refs: [refs[wanted]] if wanted in refs else [])
    return store, refs.get(wanted)


_Refs = Mapping[Ref, ObjectID]


def _fetched(
    where: str, choose: Callable[[_Refs], list[ObjectID]]
) -> tuple[BaseObjectStore, Mapping[Ref, ObjectID | None]]:
    here = MemoryRepo()
    here.object_store = _Objects()

    def wants(refs: _Refs, depth: int | None = None) -> list[ObjectID]:  # noqa: ARG001 - dulwich's signature
        return choose(refs)

    # One commit deep: nobody serves history.
    with http_client(where) as (client, path):
        fetched = client.fetch(path, here, determine_wants=wants, depth=1)
    return here.object_store, fetched.refs


@contextlib.contextmanager
def http_client(where: str, token: str = "") -> Iterator[tuple[clients.HttpGitClient, str]]:
    """A client of its host, and the path there; Rejected where that is not HTTP."""
    if not where.startswith(_SCHEMES):
        said = f"not a repository that can be fetched: {values.redacted(where)}"
        raise errors.Rejected(said, hint="use a path, http:// or https://")
    parsed = urlparse(where)
    made = _Client(
        parsed._replace(netloc=parsed.netloc.rpartition("@")[2], path="", query="").geturl(),
        # Every host takes any name beside a token.
        username="fairlead" if token else parsed.username,
        password=token or parsed.password,
        timeout=_PATIENCE_SECONDS,
        # Thin ones leave parts to what is here already, which is nothing.
        thin_packs=False,
    )
    watchdog = threading.Timer(_WHOLE_SECONDS, made.give_up)
    watchdog.daemon = True
    watchdog.start()
    try:
        yield made, parsed.path
    finally:
        watchdog.cancel()
        made.pool_manager.clear()


class _Objects(MemoryObjectStore):
    """What was fetched, while it is not too large."""

    def __init__(self) -> None:
        super().__init__()
        self._room = _MOST_BYTES

    def add_object(self, obj: ShaFile) -> None:
        # Packed, a thousandth of it came over the wire.
        self._room -= obj.raw_length()
        if self._room < 0:
            raise _too_large()
        super().add_object(obj)


class _Client(clients.HttpGitClient):
    """Takes so much in all, and so long: the patience of dulwich is that of one read among many."""

    _room = _MOST_BYTES
    _late = False
    _answer: Any = None

    def _http_request(self, *given: Any, **more: Any) -> Any:
        """Where all of dulwich's ways go out, and what it has to be overridden."""
        answer, read = super()._http_request(*given, **more)
        self._answer = answer
        if self._late:
            self.give_up()

        def bounded(size: int = -1) -> bytes:
            data = read(size)
            self._room -= len(data)
            if self._late:
                raise git_errors.GitProtocolError(f"not done within {_WHOLE_SECONDS:g} s")
            if self._room < 0:
                raise _too_large()
            return data

        return answer, bounded

    def give_up(self) -> None:
        """From another thread: the one that reads wakes up as at the end of its connection."""
        self._late = True
        if self._answer is not None:
            with contextlib.suppress(OSError, RuntimeError, ValueError):
                self._answer.shutdown()


def _too_large() -> errors.Rejected:
    told = f"the git repository is too large: more than {_MOST_BYTES // 1024 // 1024} MiB"
    return errors.Rejected(told, hint="serve content from a repository of its own")


def _told(where: str, error: Exception) -> str:
    return values.redacted(f"{where}: {str(error)[:200] or type(error).__name__}")
