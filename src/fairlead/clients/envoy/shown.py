"""What Envoy says of itself: the routes it took, with our mark, and the endpoints it knows."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

ROUTES_QUERY = {"resource": "dynamic_route_configs"}
_PARTED = "@"
_WELL = "HEALTHY"


@dataclass(frozen=True, slots=True)
class Shown:
    """The routes that Envoy goes by."""

    mark: str
    """What they were published under; empty where somebody else wrote them."""

    percents: Mapping[str, int]
    """What each version gets of the requests that no match has taken."""


def versioned(mark: str, digest: str) -> str:
    """The name of a version of a file; Envoy repeats it once it has taken the file."""
    return f"{mark}{_PARTED}{digest}" if mark else digest


def routes(text: str, version: str) -> Shown | None:
    """From the dump of Envoy's configuration, and the version of the file that it took last.

    None as long as there is no rule.
    """
    for each in msgspec.json.decode(text or "{}").get("configs", ()):
        rules = [rule for host in _hosts(each) for rule in host.get("routes", ())]
        if rules:
            mark, parted, _ = version.partition(_PARTED)
            # The last rule is the one without a match.
            return Shown(mark if parted else "", dict(_weights(rules[-1])))
    return None


def endpoints(text: str) -> dict[str, Collection[int]]:
    """From the list of Envoy's clusters: the ports of each that requests can be sent to."""
    return {
        each["name"]: tuple(_ports(each))
        for each in msgspec.json.decode(text).get("cluster_statuses", ())
    }


def _hosts(each: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = each.get("route_config", {}).get("virtual_hosts", [])
    return found


def _weights(rule: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    clusters = rule.get("route", {}).get("weighted_clusters", {}).get("clusters", ())
    # Envoy leaves out what is zero.
    return ((each["name"], each.get("weight", 0)) for each in clusters)


def _ports(cluster: Mapping[str, Any]) -> Iterator[int]:
    for host in cluster.get("host_statuses", ()):
        health = host.get("health_status", {})
        failing = health.get("failed_active_health_check", False)
        port = host.get("address", {}).get("socket_address", {}).get("port_value")
        if port is not None and health.get("eds_health_status") == _WELL and not failing:
            yield port
