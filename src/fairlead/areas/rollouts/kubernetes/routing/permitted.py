"""What objects may ask for beyond their namespace; a provider says what its own fields ask for."""

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Permitted:
    """What the settings of the operator name."""

    hosts: Sequence[str] = ()
    gateways: Sequence[str] = ()
    services: Sequence[str] = ("ClusterIP",)

    def route(
        self, gateways: Iterable[str] | None, hosts: Iterable[str] | None, namespace: str
    ) -> Iterator[tuple[str, str]]:
        """What a route of a mesh asks for beyond its namespace, by `gateways` and `hosts`."""
        entered = tuple(gateways or (_MESH,))
        for index, gateway in enumerate(entered):
            where = _gateway(gateway, namespace)
            if not (where.startswith(f"{namespace}/") or _matches(where, self.gateways)):
                told = f"a gateway of another namespace: {gateway}"
                yield f"gateways[{index}]", beyond(told, "GATEWAYS")
        for index, host in enumerate(hosts or ()):
            if _matches(host, self.hosts):
                continue
            # Which hosts a gateway serves, and to whom, its owner says; in the mesh nobody does.
            if host == "*" or (_MESH in entered and not _is_own(host, namespace)):
                told = f"not a Service of this namespace: {host}"
                yield f"hosts[{index}]", beyond(told, "HOSTS")


def beyond(what: str, setting: str) -> str:
    return f"{what}; the operator allows what FAIRLEAD_OPERATOR_{setting} names"


def _gateway(name: str, namespace: str) -> str:
    """NAMESPACE/NAME of a gateway, which may also be written as NAME or NAME.NAMESPACE."""
    if "/" in name:
        space, _, rest = name.partition("/")
        return f"{namespace if space == '.' else space}/{rest}"
    first, dot, rest = name.partition(".")
    return f"{rest.partition('.')[0] if dot else namespace}/{first}"


def _is_own(host: str, namespace: str) -> bool:
    """Whether the host is a Service of the namespace, by its short name or its full one."""
    name, dot, rest = host.partition(".")
    space, _, suffix = rest.partition(".")
    ours = not dot or (space == namespace and (not suffix or suffix.split(".")[0] == "svc"))
    return ours and "*" not in name


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)
