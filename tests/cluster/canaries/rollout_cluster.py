"""What a test of rollouts on a cluster needs: hands, objects as users write them, an operator."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.bootstrap import operator as wiring
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.client.transport import Answered, ClientOptions
from fairlead.kubernetes.controller.queue import QueueOptions
from fairlead.kubernetes.controller.registration import Registrar
from fairlead.kubernetes.operator.operator import Operator, OperatorOptions
from tests.cluster import client
from tests.cluster.space import Space

Json = dict[str, Any]
API = "fairlead.dev/v1alpha1"
ISTIO = "networking.istio.io/v1"


@dataclass
class RolloutCluster:
    """A namespace, an admin's hand in it, and how the operator reaches the cluster."""

    admin: client.Client
    space: Space
    connection: Connection
    folder: Path

    def path(self, name: str, plural: str = "canarydeployments") -> str:
        return self.space.path(plural, name, api=API)

    def deployment(self, name: str) -> str:
        return self.space.path("deployments", name, api="apps/v1")

    def route(self, name: str) -> str:
        return self.space.path("virtualservices", name, api=ISTIO)

    async def create(self, obj: Json, plural: str = "canarydeployments") -> Json:
        return await self.admin.create(self.space.path(plural, api=API), obj)

    async def set_image(self, name: str, image: str, plural: str = "canarydeployments") -> None:
        """As `kubectl edit` would: the whole object, with another image."""
        for _ in range(20):
            found = await self.admin.get(self.path(name, plural))
            found["spec"]["deploymentSpec"]["template"] = template(image)
            try:
                await self.admin.replace(self.path(name, plural), found)
            except client.ApiError as refused:
                if refused.status != 409:
                    raise
                continue
            return
        raise AssertionError(f"always changed meanwhile: {name}")

    async def ask(self, name: str, **requests: str) -> None:
        told = {f"fairlead.dev/{verb}": value for verb, value in requests.items()}
        await self.admin.patch(self.path(name), {"metadata": {"annotations": told}})

    async def until(
        self, name: str, seconds: float = 40.0, plural: str = "canarydeployments", **status: Any
    ) -> Json:
        """Until the status says this."""

        def so(obj: Json) -> bool:
            found = obj.get("status") or {}
            return all(found.get(key) == value for key, value in status.items())

        try:
            return await self.admin.wait_for(self.path(name, plural), so, seconds)
        except AssertionError:
            found = await self.admin.get(self.path(name, plural))
            told = {k: v for k, v in (found.get("status") or {}).items() if k != "memory"}
            raise AssertionError(f"not {status} after {seconds} s, but {told}") from None

    async def until_so(self, where: str, holds: Callable[[Json], bool]) -> Json:
        return await self.admin.wait_for(where, holds, 40.0)

    async def until_ready(self, deployment: str, count: int) -> None:
        """Until so many of its pods are ready."""
        await self.until_so(
            self.deployment(deployment),
            lambda obj: (obj.get("status") or {}).get("readyReplicas") == count,
        )

    async def weights(self, name: str) -> list[int]:
        found = await self.admin.get(self.route(name))
        return weights(found)

    async def reasons(self, name: str) -> set[str]:
        """Of the Events about this object."""
        found = await self.admin.get(self.space.path("events", api="events.k8s.io/v1"))
        return {one["reason"] for one in found["items"] if one["regarding"]["name"] == name}

    @contextlib.asynccontextmanager
    async def operating(
        self, store: str = "store", prometheus: str = "", without: str = "", *, all_: bool = False
    ) -> AsyncIterator["RunningOperator"]:
        """An operator at work, with the rights that it gadgets with; perhaps `without` a kind."""
        namespace = "" if all_ else self.space.name
        requests: Counter[str] = Counter()

        def count(answered: Answered) -> None:
            requests[f"{answered.verb} {answered.resource}"] += 1

        chosen = settings_.Settings(
            store=settings_.StoreSettings(state_dir=self.folder / store),
            engine=settings_.EngineSettings(poll_seconds=0.1, drain_seconds=1.0),
            measures=settings_.MeasureSettings(
                prometheus_url=prometheus, prometheus_tick_seconds=0.1
            ),
        )
        installation = wiring.with_kinds(bootstrap.installation(), chosen)
        registrars = cast("Sequence[Registrar]", installation.registrars)
        queue_options = QueueOptions(first_delay=0.1, longest_delay=1.0)
        kinds = [kind.without(without) for kind in installation.kinds]
        orders = OperatorOptions(
            kinds, namespace, queue_options=queue_options, options=ClientOptions(count=count)
        )
        operator = Operator(
            self.connection, orders, wiring.engines(chosen, installation), registrars
        )
        task = asyncio.create_task(operator.run())
        try:
            led = asyncio.create_task(operator.leading.wait())
            await asyncio.wait({led, task}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            led.cancel()
            if task.done():
                task.result()
            yield RunningOperator(operator, requests)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@dataclass
class RunningOperator:
    """A running operator, and how often it asked the API server for what."""

    operator: Operator
    requests: Counter[str]

    @property
    def writes(self) -> Counter[str]:
        verbs = ("create", "patch", "update", "delete")
        return Counter({k: n for k, n in self.requests.items() if k.startswith(verbs)})

    async def settled(self) -> None:
        """Until nothing waits, and every effect has been performed."""
        quiet = 0
        async with asyncio.timeout(120):
            while quiet < 5:
                engine = self.operator.engine
                busy = (
                    engine is None
                    or engine.in_flight
                    or any(one.waiting for one in self.operator.controllers)
                )
                quiet = 0 if busy else quiet + 1
                await asyncio.sleep(0.1)


def istio_canary(name: str = "shop", **spec: Any) -> Json:
    """As the original document writes it."""
    made = canary(name)
    del made["spec"]["provider"]
    return {**made, "kind": "IstioCanaryDeployment", "spec": {**made["spec"], **spec}}


def template(image: str, **labels: str) -> Json:
    container = {"name": "web", "image": image, "ports": [{"containerPort": 8080}]}
    return {"metadata": {"labels": {"app": "shop", **labels}}, "spec": {"containers": [container]}}


def canary(name: str = "shop", image: str = "shop:1", replicas: int = 2, **spec: Any) -> Json:
    """A CanaryDeployment as users write it."""
    return {
        "apiVersion": API,
        "kind": "CanaryDeployment",
        "metadata": {"name": name},
        "spec": {
            "deploymentSpec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "shop"}},
                "template": template(image),
            },
            "serviceSpec": {"ports": [{"port": 80, "targetPort": 8080}]},
            "provider": {"istio": {"delay": 0.1}},
            "strategy": {"steps": [50]},
            **spec,
        },
    }


def weights(route: Json) -> list[int]:
    """Of the primary and of the canary, in the first http route."""
    found = {
        one["destination"]["host"]: one.get("weight", 0)
        for one in route["spec"]["http"][0]["route"]
    }
    if len(found) == 1:
        return [100, 0]
    canary_ = sum(n for host, n in found.items() if "canary" in host)
    return [sum(found.values()) - canary_, canary_]
