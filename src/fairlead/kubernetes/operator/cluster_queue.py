"""Whose work an operator does: the queue of its cluster, or of its part of that cluster.

kubernetes@prod                     all of a cluster that is called so by a setting
kubernetes@2b1e…-41aa               by default: the UID of its namespace kube-system
kubernetes@prod/namespace/team-a    one namespace of it
kubernetes@prod/shard/0-of-3        one shard of it
"""

import hashlib
import re

import structlog

from fairlead.engine import messages
from fairlead.errors import NotFound, Rejected, Unauthorised
from fairlead.kubernetes import rbac
from fairlead.kubernetes.client.client import Client
from fairlead.kubernetes.client.config import Connection
from fairlead.kubernetes.controller.shards import Shard
from fairlead.kubernetes.objects import Key, uid_of

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
log = structlog.get_logger(__name__)


def check_name(name: str) -> str:
    """A cluster's name as a person may choose it; empty for none."""
    if name and not _NAME.fullmatch(name):
        raise Rejected(
            f"not a name of a cluster: {name[:80]}",
            hint="use up to 63 letters, digits or . _ - in FAIRLEAD_OPERATOR_CLUSTER",
        )
    return name


def queue(cluster: str, namespace: str, shard: Shard) -> str:
    """Two operators of one cluster never look for each other's work."""
    parts = [cluster]
    if namespace:
        parts.append(f"namespace/{namespace}")
    if shard.count > 1:
        parts.append(f"shard/{shard.index}-of-{shard.count}")
    return messages.queue_name("kubernetes", "/".join(parts))


async def found_name(client: Client, connection: Connection) -> str:
    """What tells the cluster from others: a UID that lives as long as it does."""
    try:
        return uid_of(await client.get(rbac.NAMESPACES, Key("", rbac.SYSTEM)))
    except (Unauthorised, NotFound) as error:
        # A Role in one namespace does not reach it. Who signs for the API server tells clusters
        # apart too, until that is renewed; then objects bring their streams along at the start.
        known = connection.ca or connection.server.encode()
        name = f"ca-{hashlib.sha256(known).hexdigest()[:16]}"
        log.warning("kubernetes.cluster.unnamed", called=name, error=error.message)
        return name
