"""Kinds of other projects, as their own Go modules carry them."""

import asyncio
from typing import Literal

from tests.cluster import client
from tools.cluster import parts

Project = Literal["istio", "gateway", "argocd"]

_CRDS = client.path("apiextensions.k8s.io/v1", "customresourcedefinitions")
_EXISTS = 409


async def install(
    admin: client.Client, found: parts.Parts, project: Project | str
) -> tuple[str, ...]:
    """The names of the project's kinds, once the API server serves them; again is free."""
    documents = [
        document
        for file in sorted(found.folder(f"crds/{project}").glob("*.yaml"))
        for document in file.read_text().split("\n---\n")
        if "\nkind: CustomResourceDefinition\n" in f"\n{document}\n"
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_install(admin, document)) for document in documents]
    return tuple(sorted(task.result() for task in tasks))


async def _install(admin: client.Client, document: str) -> str:
    name = await _create(admin, document)
    await admin.wait_for(f"{_CRDS}/{name}", _established, seconds=60.0)
    return name


async def _create(admin: client.Client, document: str) -> str:
    try:
        made = await admin.create(_CRDS, document.encode())
    except client.ApiError as refused:
        if refused.status != _EXISTS:
            raise
        return str(refused.body["details"]["name"])
    return str(made["metadata"]["name"])


def _established(crd: client.Json) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
