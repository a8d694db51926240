"""Resources by their URL: what type a template names, and which other one it stands below.

Names of parameters do not matter, nor does the order of the input. A fixed name stands where a
parameter may: `/blobServices/default/containers/{name}` is below `/blobServices/{service}`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PARAMETER = re.compile(r"\{[^{}]*\}")
# No separator, no escape, and no way up.
_NAME = re.compile(r"(?!\.+$)[A-Za-z0-9_.()@~ -]{1,260}")
_PROVIDERS = "providers"
_GROUPS = "Microsoft.Resources/resourceGroups"
_SUBSCRIPTIONS = "Microsoft.Resources/subscriptions"

Segments = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A URL in the tree of all."""

    url: str
    parent: str | None
    """The URL that it stands below, or none at the top."""

    is_child: bool
    """Whether it belongs to its parent (a collection, an action), and names nothing new."""


def tree(urls: Iterable[str]) -> Mapping[str, Node]:
    """Every URL with its parent, top-level ones first."""
    known: dict[Segments, str] = {}
    for url in sorted(urls):
        known.setdefault(segments(url), url)
    return {url: _node(url, each, known) for each, url in sorted(known.items())}


def _node(url: str, each: Segments, known: Mapping[Segments, str]) -> Node:
    for length in range(len(each) - 1, 0, -1):
        above = _known(each[:length], known)
        if above is not None:
            return Node(url, known[above], is_child="{}" not in each[length:])
    return Node(url, None, is_child=False)


def _known(prefix: Segments, known: Mapping[Segments, str]) -> Segments | None:
    """The prefix itself, or the same with a parameter where it has a fixed name."""
    if prefix in known:
        return prefix
    for place in range(len(prefix) - 1, -1, -1):
        loose = (*prefix[:place], "{}", *prefix[place + 1 :])
        if prefix[place] != "{}" and loose in known:
            return loose
    return None


def segments(url: str) -> Segments:
    """Without the names of parameters; `Items({id})` is two segments, as in OData."""
    plain = _PARAMETER.sub("{}", url).strip("/").replace("(", "/").replace(")", "")
    return tuple(plain.split("/"))


def type_of(url: str) -> str:
    """`Microsoft.Network/virtualNetworks/subnets`; elsewhere the fixed names of the URL."""
    parts = segments(url)
    if _PROVIDERS in parts:
        after = parts[len(parts) - parts[::-1].index(_PROVIDERS) :]
        # Type and name take turns, also where a name is fixed.
        return "/".join((*after[:1], *after[1::2]))
    fixed = [part for part in parts if part != "{}"]
    match [part.lower() for part in fixed]:
        case ["subscriptions"]:
            return _SUBSCRIPTIONS
        case ["subscriptions", "resourcegroups"]:
            return _GROUPS
    return "/".join(fixed)


def collection(url: str) -> str | None:
    """Where new ones are posted to, for a URL that ends in a parameter."""
    head, _, last = url.rstrip("/").rpartition("/")
    return head if _PARAMETER.fullmatch(last) else None


def is_unmade(id_: str) -> bool:
    """`/robots/{ours}`: a name of ours stands where the API will give one."""
    return _PARAMETER.fullmatch(id_.rpartition("/")[2]) is not None


def within(id_: str) -> str:
    """What it stands in."""
    return id_.rstrip("/").rpartition("/")[0]


def below(template: str, owner: str, name: str) -> str | None:
    """The id of one with this name in its owner; None where none can stand there."""
    known = template.strip("/").split("/")
    made = "/".join((*owner.strip("/").split("/"), *known[len(owner.strip("/").split("/")) : -1]))
    id_ = f"/{made}/{name}"
    return id_ if fits(template, id_) else None


def fits(template: str, id_: str) -> bool:
    """Whether an id is this URL with names in it: nothing else may be asked for by it."""
    if is_unmade(id_) and _PARAMETER.fullmatch(template.rpartition("/")[2]):
        id_ = f"{within(id_)}/{id_.rpartition('/')[2][1:-1]}"
    parts, names = segments(template), id_.strip("/").split("/")
    if not id_.startswith("/") or len(parts) != len(names):
        return False
    return all(
        _NAME.fullmatch(name) and part.lower() in ("{}", name.lower())
        for part, name in zip(parts, names, strict=True)
    )
