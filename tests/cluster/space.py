"""A namespace of one test, and the users that live in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.cluster import client

Rules = Sequence[client.Json]

LEASE_RULES: Rules = (
    {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["create", "get", "update"],
    },
)
"""For the election; those that we ship name the leases."""

_RBAC = "rbac.authorization.k8s.io/v1"
_LONGEST_PREFIX = 40


@dataclass(frozen=True, slots=True)
class Account:
    """A service account: who a program is to the cluster."""

    user: str
    token: str


class Space:
    """One namespace; what it made outside of it is remembered and removed with it."""

    def __init__(self, admin: client.Client, name: str) -> None:
        self._admin = admin
        self._outside: list[str] = []
        self.name = name

    def path(self, resource: str, name: str = "", api: str = "v1") -> str:
        return client.path(api, resource, self.name, name)

    async def account(self, name: str, rules: Rules = (), cluster_rules: Rules = ()) -> Account:
        """A user with these rights in the namespace, and those everywhere."""
        await self._admin.create(self.path("serviceaccounts"), {"metadata": {"name": name}})
        if rules:
            await self._bind("Role", self.name, name, rules)
        if cluster_rules:
            await self._bind("ClusterRole", "", name, cluster_rules)
        return Account(f"system:serviceaccount:{self.name}:{name}", await self.token(name))

    async def token(self, account: str) -> str:
        """What a pod of this service account would be given."""
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        where = f"{self.path('serviceaccounts', account)}/token"
        answer = await self._admin.create(where, asked)
        return str(answer["status"]["token"])

    async def remove(self) -> None:
        """Asks for it and does not wait: Kubernetes empties a namespace after 5 seconds."""
        for where in self._outside:
            await self._admin.delete(where)
        await self._admin.delete(client.path("v1", "namespaces", name=self.name))

    async def _bind(self, kind: str, namespace: str, account: str, rules: Rules) -> None:
        # Roles for everywhere share one room: the namespace in the name keeps tests apart.
        name = account if namespace else f"{self.name}-{account}"
        subject = {"kind": "ServiceAccount", "name": account, "namespace": self.name}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
        parts: dict[str, client.Json] = {
            f"{kind.lower()}s": {"rules": list(rules)},
            f"{kind.lower()}bindings": {"subjects": [subject], "roleRef": role},
        }
        for resource, body in parts.items():
            made = {"metadata": {"name": name}, **body}
            await self._admin.create(client.path(_RBAC, resource, namespace), made)
            if not namespace:
                self._outside.append(client.path(_RBAC, resource, name=name))


async def make(admin: client.Client, test: str, *, wait_for_account: bool) -> Space:
    """A namespace named after the test, ready for pods."""
    prefix = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST_PREFIX].strip("-")
    made = await admin.create(
        client.path("v1", "namespaces"), {"metadata": {"generateName": f"{prefix}-"}}
    )
    space = Space(admin, made["metadata"]["name"])
    if wait_for_account:
        # A pod that comes before its service account is refused.
        account = space.path("serviceaccounts", "default")
        # The controllers take their time after a test that killed the API server.
        await admin.wait_for(account, lambda _: True, seconds=120)
    return space
