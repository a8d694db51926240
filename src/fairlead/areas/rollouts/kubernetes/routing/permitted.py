"""What objects may ask for beyond their namespace; a provider says what its own fields ask for."""

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_MESH = "mesh"
_OWN_SPACE = (".", "~")
"""Exported to the namespace of the route, and to none."""


@dataclass(frozen=True, slots=True)
class Permitted:
    """What the settings of the operator name."""

    hosts: Sequence[str] = ()
    gateways: Sequence[str] = ()
    services: Sequence[str] = ("ClusterIP",)
    exports: Sequence[str] = ()

    def route(self, spec: object, namespace: str) -> Iterator[tuple[str, str]]:
        """What a route of a mesh asks for beyond its namespace."""
        said = spec if isinstance(spec, Mapping) else {}
        gateways = _texts(said.get("gateways")) or (_MESH,)
        for index, gateway in enumerate(gateways):
            where = _gateway(gateway, namespace)
            if not (where.startswith(f"{namespace}/") or _matches(where, self.gateways)):
                told = f"a gateway of another namespace: {gateway}"
                yield f"gateways[{index}]", beyond(told, "GATEWAYS")
        for index, host in enumerate(_texts(said.get("hosts"))):
            if _matches(host, self.hosts):
                continue
            # Which hosts a gateway serves, and to whom, its owner says; in the mesh nobody does.
            if host == "*" or (_MESH in gateways and not _is_own(host, namespace)):
                told = f"not a Service of this namespace: {host}"
                yield f"hosts[{index}]", beyond(told, "HOSTS")
        # Without the field the mesh's own default holds, which is its owner's to say.
        for index, space in enumerate(_texts(said.get("exportTo"))):
            if space not in {*_OWN_SPACE, namespace} and not _matches(space, self.exports):
                yield f"exportTo[{index}]", beyond(f"another namespace: {space}", "EXPORTS")


def beyond(what: str, setting: str) -> str:
    return f"{what}; the operator allows what FAIRLEAD_OPERATOR_{setting} names"


def _texts(value: object) -> tuple[str, ...]:
    """Of a list; what is none is refused by its schema."""
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


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
