"""kopf doing the same work, written as its documentation shows, children sent by aiohttp."""

import asyncio
import contextlib
import logging
import ssl
from typing import Any

import aiohttp
import kopf
import msgspec

from bench.contestants import fleet

_JSON = {"Content-Type": "application/json"}


async def run(task: fleet.Task) -> fleet.Measurements:
    logging.disable(logging.CRITICAL)
    watch = fleet.Watch()
    registry = kopf.OperatorRegistry()
    done, stop = asyncio.Event(), asyncio.Event()
    trust = ssl.create_default_context(cafile=task.authority)
    async with aiohttp.ClientSession(
        task.server,
        connector=aiohttp.TCPConnector(ssl=trust, limit=task.workers),
        headers={"Authorization": f"Bearer {task.token}"},
        raise_for_status=True,
    ) as session:
        _register(registry, task, session, done)
        operator = asyncio.create_task(
            kopf.operator(
                registry=registry,
                settings=_settings(),
                namespaces=[task.namespace],
                standalone=True,
                stop_flag=stop,
            )
        )
        ended = asyncio.create_task(done.wait())
        await asyncio.wait((operator, ended), return_when=asyncio.FIRST_COMPLETED)
        measurements = watch.measurements(task.objects)
        if not done.is_set():
            await operator
            raise RuntimeError("kopf ended before its work did")
        stop.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await operator
    return measurements


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    # No limit on its workers, its default: with eight it took a hundred times as long, for a
    # worker of kopf keeps its place for five idle seconds after its object is done.
    return settings


def _register(
    registry: kopf.OperatorRegistry,
    task: fleet.Task,
    session: aiohttp.ClientSession,
    done: asyncio.Event,
) -> None:
    finished: set[str] = set()
    config_maps = f"/api/v1/namespaces/{task.namespace}/configmaps"

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=task.server, ca_path=task.authority, token=task.token)

    @kopf.on.create("tests.fairlead.dev", "v1", fleet.PLURAL, registry=registry)
    async def build(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
        for child in fleet.children(dict(body), task.children):
            kopf.adopt(child, owner=body)
            sent = msgspec.json.encode(child)
            async with session.post(config_maps, data=sent, headers=_JSON) as answer:
                await answer.read()
        patch.status["phase"] = fleet.READY

    @kopf.on.event("tests.fairlead.dev", "v1", fleet.PLURAL, registry=registry)
    def see(name: str, status: kopf.Status, **_: Any) -> None:
        if status.get("phase"):
            finished.add(name)
            if len(finished) == task.objects:
                done.set()


if __name__ == "__main__":
    fleet.serve(run)
