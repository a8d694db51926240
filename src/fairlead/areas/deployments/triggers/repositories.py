"""Files and commits of repositories, from GitHub's API or from any git server over HTTP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from fairlead import errors
from fairlead.areas.deployments.domain.trigger.messages import Source
from fairlead.clients import credentials, git
from fairlead.clients.commit_statuses import CommitStatuses
from fairlead.clients.github import GitHub
from fairlead.clients.host_api import CheckReport

MOST_BYTES = 256 * 1024
MOST_MIGRATIONS = 300
"""Of one database: each is a question to GitHub."""

_AT_ONCE = 8
_MOST_SNAPSHOTS = 4
_DOWN = (".down.sql", ".undo.sql", ".rollback.sql")


@dataclass(frozen=True, slots=True)
class GitHost:
    """A git server; where it is comes from the settings, never from what somebody sends."""

    url: str
    token_file: Path | None = None

    def address(self, repository: str) -> str:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
            raise errors.Rejected(
                f"not an address of a git server: {self.url[:80]}", hint="use https://HOST"
            )
        who = ""
        if self.token_file is not None:
            who = f"oauth2:{quote(credentials.secret(self.token_file), safe='')}@"
        path = f"{parts.path.rstrip('/')}/{repository}.git"
        return f"{parts.scheme}://{who}{parts.netloc}{path}"


@dataclass
class Repositories:
    """Reads what triggers ask for."""

    github: GitHub
    hosts: Mapping[str, GitHost]
    statuses: Mapping[str, CommitStatuses] = field(default_factory=dict)
    """Of hosts other than GitHub."""

    _snapshots: dict[tuple[str, str], git.Snapshot] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self, source: Source, path: str) -> bytes:
        if source.provider == "github":
            at = source.repository, source.commit
            return await self.github.read_file(*at, path, MOST_BYTES)
        found = await self._snapshot(self._address(source), source.commit)
        return await asyncio.to_thread(found.read, path, MOST_BYTES)

    async def migrations(self, source: Source, path: str) -> dict[str, str]:
        """The SQL files of a folder, by their names."""
        if source.provider == "github":
            names = await self.github.names(source.repository, source.commit, path)
        else:
            found = await self._snapshot(self._address(source), source.commit)
            names = await asyncio.to_thread(found.names, path)
        wanted = sorted(
            name for name in names if name.endswith(".sql") and not name.endswith(_DOWN)
        )
        if len(wanted) > MOST_MIGRATIONS:
            raise errors.Rejected(
                f"more than {MOST_MIGRATIONS} SQL files: {path}",
                hint="squash those that every database has",
            )
        texts: dict[str, str] = {}
        # One after the other, the last of them would overrun the time that an effect has.
        for at in range(0, len(wanted), _AT_ONCE):
            some = wanted[at : at + _AT_ONCE]
            read = await asyncio.gather(*(self.read(source, f"{path}/{name}") for name in some))
            texts |= {name: _text(name, data) for name, data in zip(some, read, strict=True)}
        return texts

    async def resolve(self, source: Source) -> str:
        if source.provider == "github":
            return await self.github.resolve(source.repository, source.ref)
        return await asyncio.to_thread(git.resolve, self._address(source), source.ref)

    async def publish(self, provider: str, report: CheckReport) -> None:
        """Show it beside the commit."""
        shows = self.statuses.get(provider, self.github)
        await shows.publish(report)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(self.github.open())
            for each in self.statuses.values():
                await stack.enter_async_context(each.open())
            yield

    def _address(self, source: Source) -> str:
        host = self.hosts.get(source.provider)
        if host is None or not host.url:
            raise errors.Rejected(
                f"no address is set for: {source.provider}",
                hint=f"set FAIRLEAD_DEPLOYMENTS_{source.provider.upper()}_URL",
            )
        return host.address(source.repository)

    async def _snapshot(self, where: str, commit: str) -> git.Snapshot:
        # One at a time: fifty applications of one push are fetched by the first of them.
        async with self._lock:
            found = self._snapshots.pop((where, commit), None)
            if found is None:
                found = await asyncio.to_thread(git.snapshot, where, commit)
            self._snapshots[(where, commit)] = found
            while len(self._snapshots) > _MOST_SNAPSHOTS:
                del self._snapshots[next(iter(self._snapshots))]
            return found


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise errors.Rejected(f"not a text in UTF-8: {name}", hint="save it as UTF-8") from error
