"""The service as processes of this machine, behind an Envoy that moves from old ones to new ones.

start what is wanted ──► all ready with the right versions ──► Envoy goes to them ──► stop others

Each call does what is missing, so a crash at any point is repaired by the next one.
"""

import contextlib
import hashlib
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import aiohttp
import msgspec

from fairlead.areas.content.domain.release.place import LocalService, Place, Versions
from fairlead.areas.content.release import shares
from fairlead.areas.content.release.ports import Observed, Progress
from fairlead.clients import envoy
from fairlead.clients.processes import Health, Instance, Patience, Phase, Program, Supervisor
from fairlead.clients.processes.records import replace

_READY_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_LOG_BYTES = 4096


class LocalDeployments:
    """All contents of one state folder; used inside `running`."""

    def __init__(self, folder: Path, unleash: Mapping[str, str]) -> None:
        self._folder = folder
        self._unleash = unleash
        """Variables by which a service reaches Unleash."""

        self._supervisor = Supervisor(folder / "processes")
        self._proxies: dict[str, envoy.Proxy] = {}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Take over what runs; at the end leave all of it running."""
        async with self._supervisor.running():
            yield

    async def deploy(
        self, name: str, at: LocalService, place: Place, versions: Versions
    ) -> Observed:
        programs = self._programs(name, at, place, versions)
        for each in programs:
            await self._supervisor.ensure(each)
        started = [self._supervisor.instance(each.name) for each in programs]
        for one in started:
            if one.phase is Phase.CRASH_LOOPING:
                return Observed(Progress.FAILED, self._why(one))
            if one.phase is not Phase.HEALTHY:
                return Observed(Progress.WAITING, one.why)
            if not await _has(one.port, versions):
                return Observed(Progress.WAITING, f"port {one.port} serves other versions")
        await self._route(name, at, started)
        await self._stop_others(name, {each.name for each in programs})
        return Observed(Progress.READY)

    def _programs(
        self, name: str, at: LocalService, place: Place, versions: Versions
    ) -> Sequence[Program]:
        content = msgspec.json.encode(place.description, order="sorted")
        env = self._variables(name, place, versions)
        meant = hashlib.blake2b(content, digest_size=5)
        meant.update(msgspec.json.encode(env, order="sorted"))
        stem = f"{shares.stem(name)}.{meant.hexdigest()}"
        # Named by what it holds: an old instance that starts again must find its own.
        file = self._folder / "contents" / f"{stem}.json"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace(file, content)
        command = (sys.executable, "-m", "fairlead", "content", "serve", str(file), "--supervised")
        return [
            Program(
                f"{stem}.{number}",
                command,
                env,
                health=Health("/readyz"),
                patience=Patience(longest_backoff_seconds=5.0),
            )
            for number in range(at.replicas)
        ]

    def _variables(self, name: str, place: Place, versions: Versions) -> dict[str, str]:
        env = {"STABLE_VERSION": versions.stable, "CANARY_VERSION": versions.canary}
        # Envoy sends nothing more by then.
        env["FAIRLEAD_CONTENT_DRAIN_SECONDS"] = "0.5"
        if place.flag is None:
            return env | {"FAIRLEAD_CONTENT_SHARE_FILE": str(shares.file(self._folder, name))}
        # What one instance heard last, the next one knows when it starts without Unleash.
        kept = self._folder / "unleash" / f"{shares.stem(name)}.json"
        kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        env |= {"FAIRLEAD_CONTENT_UNLEASH_FILE": str(kept)}
        return {**env, **self._unleash, "FAIRLEAD_CONTENT_UNLEASH_TOGGLE": place.flag.name}

    async def _route(self, name: str, at: LocalService, started: Sequence[Instance]) -> None:
        stem = shares.stem(name)
        proxy = self._proxies.get(stem)
        if proxy is None or proxy.port != at.port:
            folder, listen = self._folder / "envoy" / stem, envoy.Listen(at.port)
            proxy = envoy.Proxy(folder, self._supervisor, listen, f"{stem}.envoy")
            self._proxies[stem] = proxy
        await proxy.start()
        version = started[0].name.rpartition(".")[0]
        # Answers are there already: one that takes long comes from a machine that stands still, and
        # whoever asks would ask it again.
        rule = envoy.Rule((envoy.Weight(version, 100),), timeout_seconds=_ANSWER_SECONDS)
        served = envoy.Version(version, tuple(each.port for each in started))
        await proxy.apply(envoy.Table((served,), (envoy.Site(stem, (rule,)),)))

    async def _stop_others(self, name: str, wanted: set[str]) -> None:
        stem = shares.stem(name)
        for each in self._supervisor.instances():
            ours = each.name.partition(".")[0] == stem and each.name != f"{stem}.envoy"
            if ours and each.name not in wanted:
                await self._supervisor.stop(each.name)
        # Written again should it be deployed again.
        kept = {each.rpartition(".")[0] for each in wanted}
        for file in (self._folder / "contents").glob(f"{stem}.*.json"):
            if file.name.removesuffix(".json") not in kept:
                file.unlink(missing_ok=True)

    def _why(self, instance: Instance) -> str:
        """What it said itself; that it ended helps nobody."""
        with contextlib.suppress(OSError):
            tail = self._supervisor.log(instance.name).read_bytes()[-_LOG_BYTES:]
            lines = tail.decode(errors="replace").splitlines()
            said = [line for line in lines if line.startswith("error: ")]
            if said:
                return said[-1].removeprefix("error: ")
        return instance.why


async def _has(port: int, versions: Versions) -> bool:
    timeout = aiohttp.ClientTimeout(total=_READY_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"http://127.0.0.1:{port}/readyz") as answer,
        ):
            told = msgspec.json.decode(await answer.content.read(_LOG_BYTES))
    except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError):
        return False
    return (told.get("stable"), told.get("canary")) == (versions.stable, versions.canary)
