"""The Prometheus servers of this installation: the usual one, and others by name.

A check chooses by name and never by address: what a user writes into an object must not make us
call whatever stands in our network. Whose rollouts may ask a named server is the operator's word.

    [payments]
    url = "https://prometheus.payments:9090"
    token-file = "/run/secrets/payments"
    rollouts = ["payments/*"]
"""

import contextlib
import fnmatch
import tomllib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairlead import errors
from fairlead.clients import credentials
from fairlead.clients.prometheus import Access, Prometheus, Shared
from fairlead.settings import MeasureSettings

USUAL = ""
MOST_SECONDS = 20


class _Entry(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    url: str
    token_file: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    seconds: float = 5.0
    rollouts: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Server:
    """One server, and the rollouts that may ask it, as patterns of their names."""

    access: Access
    rollouts: tuple[str, ...] = ("*",)

    def serves(self, rollout: str) -> bool:
        return any(fnmatch.fnmatchcase(rollout, pattern) for pattern in self.rollouts)


@dataclass(frozen=True, slots=True)
class Servers:
    """All of them, by name; the usual one has none."""

    known: Mapping[str, Server]
    _open: dict[str, Shared] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def open(self, tick_seconds: float) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for name, server in self.known.items():
                client = await stack.enter_async_context(Prometheus(server.access))
                self._open[name] = Shared(client, tick_seconds)
            try:
                yield
            finally:
                self._open.clear()

    def check(self, name: str, rollout: str) -> None:
        """Rejected where the rollout cannot ask this server."""
        if name not in self.known and name == USUAL:
            raise errors.Rejected(
                "no prometheus is known to this installation",
                hint="let the operator set FAIRLEAD_PROMETHEUS_URL",
            )
        if name not in self.known or not self.known[name].serves(rollout):
            # The same words for both: who may not ask need not know what there is.
            raise errors.Rejected(
                f"no server of this name for the rollout {rollout}: {name[:80]}",
                hint="let the operator add it to the file of FAIRLEAD_PROMETHEUS_SERVERS",
            )

    def of(self, name: str, rollout: str) -> Shared:
        self.check(name, rollout)
        if name not in self._open:
            raise errors.Unavailable("metrics are not open", hint="use them inside open()")
        return self._open[name]


def from_settings(chosen: MeasureSettings) -> Servers:
    """The servers that the settings name; Rejected where they are malformed."""
    known: dict[str, Server] = {}
    if chosen.prometheus_url:
        known[USUAL] = Server(
            Access(
                chosen.prometheus_url,
                credentials.path(chosen.prometheus_token_file),
                chosen.prometheus_username,
                credentials.path(chosen.prometheus_password_file),
                credentials.path(chosen.prometheus_ca_file),
                chosen.prometheus_seconds,
            )
        )
    file = credentials.path(chosen.prometheus_servers)
    return Servers({**known, **(read(file) if file else {})})


def read(file: Path) -> Mapping[str, Server]:
    """The servers of a file, by name."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        entries = msgspec.convert(content, dict[str, _Entry])
    except (OSError, ValueError) as error:
        raise errors.Rejected(
            f"file of metrics servers cannot be read, {file}: {error}",
            hint="it holds a table for each server, such as [payments], with at least a url",
        ) from error
    return {name: _server(entry) for name, entry in entries.items()}


def _server(entry: _Entry) -> Server:
    if not 0 < entry.seconds <= MOST_SECONDS:
        raise errors.Rejected(
            f"seconds of a metrics server outside 0-{MOST_SECONDS}: {entry.seconds:g}",
            hint="leave it out for 5",
        )
    access = Access(
        entry.url,
        credentials.path(entry.token_file),
        entry.username,
        credentials.path(entry.password_file),
        credentials.path(entry.ca_file),
        entry.seconds,
    )
    return Server(access, entry.rollouts)
