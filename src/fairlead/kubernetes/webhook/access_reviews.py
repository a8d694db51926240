"""Whether whoever writes an object has the rights that the operator will use for it.

An operator makes Deployments, Services and routes with rights of its own. Without this question
the right to write a canary would be all of those.
"""

import asyncio
import functools
from collections.abc import Sequence

import msgspec

from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.kinds import Need
from fairlead.kubernetes.objects import Object, Resource
from fairlead.kubernetes.webhook.admission import Missing, Problem, User

REVIEWS = Resource(
    *("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"),
    namespaced=False,
)


def asking(client: Client) -> Missing:
    return functools.partial(missing, client)


async def missing(client: Client, user: User, needs: Sequence[Need]) -> tuple[Problem, ...]:
    """The needs that the user lacks, by the API server's own word; its errors are ours."""
    async with asyncio.TaskGroup() as asked:
        answers = [asked.create_task(client.create(REVIEWS, _review(user, need))) for need in needs]
    return tuple(
        Problem(need.path, _told(user, need))
        for need, answer in zip(needs, answers, strict=True)
        if not (answer.result().get("status") or {}).get("allowed")
    )


def _review(user: User, need: Need) -> Object:
    attributes = {
        "verb": need.verb,
        "group": need.api.group,
        "resource": need.api.plural,
        "namespace": need.namespace,
        "name": need.name,
    }
    who = {"user": user.username, **msgspec.to_builtins(user)}
    del who["username"]
    return {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "spec": {**who, "resourceAttributes": attributes},
    }


def _told(user: User, need: Need) -> str:
    name = f" {need.name}" if need.name else ""
    where = f" in namespace {need.namespace}" if need.namespace else ""
    return f"the operator would {need.verb} {need.api}{name}{where}, which {user.username} may not"
