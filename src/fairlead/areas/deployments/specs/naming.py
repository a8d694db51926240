"""How an application's things are called outside: the same input gives the same name, always."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from fairlead.areas.deployments.specs.application import Application, Container
from fairlead.areas.deployments.specs.environment import AwsCluster, Environment

COUNT, SCALED_FROM, IMAGE, PRIORITY = "DesiredCount", "ScaledFrom", "Image", "Priority"
"""What a parameter of the template begins with. `ScaledFrom` holds the count to go back to while
a stack is scaled down: it lives in the stack, so no crash and no failed deployment loses it."""

RULE_GROUPS = {"FIRST": 1, "NORMAL": 1000, "FALLBACK": 2000}
"""The lowest priority of a listener's rule, by route group; each group has 999."""


@dataclass(frozen=True, slots=True)
class Site:
    """One application in one environment of one cluster: what names are made from."""

    app: Application
    environment: Environment
    aws: AwsCluster

    @property
    def stack(self) -> str:
        return f"{self.environment.full_name}-{self.app.name}"

    def secret(self, name: str) -> str:
        return f"{self.environment.full_name}/{self.app.name}/{name}"

    def secret_arn(self, name: str, json_key: str) -> str:
        """Without the random end that AWS adds: it is found by its name, also before it is made."""
        where = f"{self.aws.aws_region}:{self.aws.aws_account}"
        return f"arn:aws:secretsmanager:{where}:secret:{self.secret(name)}:{json_key}::"

    def topic_arn(self, name: str) -> str:
        return f"arn:aws:sns:{self.aws.aws_region}:{self.aws.aws_account}:{name}"

    def bucket(self, name: str) -> str:
        """Of a blobstore of the application, its own or somebody else's."""
        store = next(each for each in self.app.blobstores if each.name == name)
        if store.ref is not None and store.ref.bucket_name:
            return store.ref.bucket_name
        owner = store.ref.application if store.ref is not None else self.app.name
        parts = (store.name, owner, self.environment.full_name, self.aws.global_namespace)
        return "-".join(part.lower() for part in parts if part).replace("_", "-")

    def image(self, container: Container, version: str) -> str:
        if container.image is None:
            return container.image_url
        registry = container.image.registry or self.aws.ecs_cluster.default_registry
        return f"{registry}/{container.image.name}:{container.image.tag or version}"

    def priority(self, runtime: str, at: int) -> str:
        """Of a route's rule: from its name, so that it is the same each time it is built."""
        route = next(each for each in self.app.runtimes if each.name == runtime).routes[at]
        lowest = RULE_GROUPS[route.route_group]
        said = f"{self.stack} {runtime} {route.prefix} {','.join(route.subdomains)}"
        return str(lowest + int(hashlib.sha256(said.encode()).hexdigest(), 16) % 999)


def logical(*words: str) -> str:
    """An id of CloudFormation: letters and digits."""
    parts = [part for word in words for part in re.split("[^A-Za-z0-9]", word) if part]
    return "".join(part[0].upper() + part[1:] for part in parts)


def resource(type_: str, *, keep: bool = False, **properties: Any) -> dict[str, Any]:
    """What holds data stays when its stack goes."""
    policies = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"} if keep else {}
    return {"Type": type_, **policies, "Properties": properties}
