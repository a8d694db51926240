"""What the operator must be allowed to do, from the kinds it serves: no more, no less."""

from collections.abc import Iterable

from fairlead.kubernetes import schema
from fairlead.kubernetes.kinds import Kind
from fairlead.kubernetes.objects import Object, Resource

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
SYSTEM = "kube-system"
"""The namespace that lives as long as its cluster."""

_READ = ("get", "list", "watch")


def definition(kind: Kind) -> Object:
    """The CustomResourceDefinition that installs the kind."""
    made = schema.definition(kind.api, kind.shown)
    for version in made["spec"]["versions"]:
        properties = version["schema"]["openAPIV3Schema"]["properties"]
        # A status is ours to write: what the server filled in would differ from it for ever.
        properties["status"] = _without_defaults(properties["status"])
    return made


def rules(kinds: Iterable[Kind]) -> list[Object]:
    """The rules of a Role or ClusterRole, for the namespaces that are reconciled."""
    granted: dict[tuple[str, str], set[str]] = {}

    def grant(group: str, name: str, *verbs: str) -> None:
        granted.setdefault((group, name), set()).update(verbs)

    for kind in kinds:
        api = kind.api
        grant(api.group, api.plural, *_READ)
        if kind.finalizer or kind.amended:
            grant(api.group, api.plural, "patch")
        grant(api.group, f"{api.plural}/status", "patch")
        if kind.group:
            # With their statuses: it is the word for every subresource, too.
            grant(kind.group, "*", *_READ, "patch")
        if kind.children:
            # The API server asks for this where a child carries blockOwnerDeletion.
            grant(api.group, f"{api.plural}/finalizers", "update")
        for child in kind.children:
            grant(child.group, child.plural, *_READ, "create", "patch", "delete")
        for related in kind.related:
            grant(related.api.group, related.api.plural, *_READ, *related.writes)
    grant("events.k8s.io", "events", "create", "patch")
    return [_rule(group, name, verbs) for (group, name), verbs in sorted(granted.items())]


def cluster_rule() -> Object:
    """To tell this cluster from another on the same store, by the UID of that namespace."""
    rule = _rule(NAMESPACES.group, NAMESPACES.plural, {"get"})
    return {**rule, "resourceNames": [SYSTEM]}


def status_key_rules(secret: str) -> list[Object]:
    """The rules for the key that seals statuses, in the namespace of the operator itself."""
    # A create cannot be bound to a name.
    named = {**_rule("", SECRETS.plural, {"get"}), "resourceNames": [secret]}
    return [_rule("", SECRETS.plural, {"create"}), named]


def _rule(group: str, name: str, verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": [name], "verbs": sorted(verbs)}


def _without_defaults(found: Object) -> Object:
    """The schema, with no default at any depth; a field may well be called so."""
    kept: Object = {name: value for name, value in found.items() if name != "default"}
    if "properties" in kept:
        fields = kept["properties"].items()
        kept["properties"] = {name: _without_defaults(value) for name, value in fields}
    for below in ("items", "additionalProperties"):
        if isinstance(kept.get(below), dict):
            kept[below] = _without_defaults(kept[below])
    return kept
