"""Files of a repository as objects of one namespace; whatever reaches beyond it is refused.

Plain YAML and JSON only: nothing is rendered, so nothing in a repository runs here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead import errors
from fairlead.areas.gitops.builtin import kinds
from fairlead.areas.gitops.domain.messages import ObjectRef
from fairlead.console.files import Document

MOST_OBJECTS = 1000
ENDINGS = (".yaml", ".yml", ".json")
_RENDERED: Mapping[str, str] = {
    "kustomization.yaml": "Kustomize",
    "kustomization.yml": "Kustomize",
    "Kustomization": "Kustomize",
    "Chart.yaml": "Helm",
}
# In a block of text it would be indented: at the start of a line it always begins a document.
_DOCUMENT = re.compile(r"^(?=---(?:\s|$))", re.MULTILINE)
_SERVERS_OWN = ("managedFields", "resourceVersion", "uid", "ownerReferences", "generateName")
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - the type of a Secret, no secret


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object as the repository has it, in its namespace."""

    ref: ObjectRef
    body: dict[str, Any]


def check_names(names: Iterable[str]) -> None:
    """Rejected where the folder is meant for a renderer."""
    for name in names:
        if name in _RENDERED:
            raise errors.Rejected(
                f"the folder is for {_RENDERED[name]}, which is not rendered yet: {name}",
                hint="commit plain manifests",
            )


def parsed(files: Iterable[tuple[str, bytes]], namespace: str) -> tuple[Manifest, ...]:
    """In the order in which they are applied."""
    found: dict[tuple[str, str, str], Manifest] = {}
    for name, data in files:
        for body in _bodies(name, data):
            made = _manifest(name, body, namespace)
            if made.ref.place in found:
                raise _wrong(name, made.ref, "is in the folder twice", "keep one of them")
            found[made.ref.place] = made
            if len(found) > MOST_OBJECTS:
                raise errors.Rejected(
                    f"more than {MOST_OBJECTS} objects, the last in {name}",
                    hint="split the folder into several deployments",
                )
    by_ref = {each.ref: each for each in found.values()}
    return tuple(by_ref[ref] for ref in kinds.in_order(by_ref))


def _bodies(name: str, data: bytes) -> Iterator[dict[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise errors.Rejected(f"not a text in UTF-8: {name}", hint="save it as UTF-8") from error
    for number, part in enumerate(_DOCUMENT.split(text)):
        document = Document.parse(name if number == 0 else f"{name} part {number}", part)
        with document.placed():
            found = list(_items(name, document.content))
        yield from found


def _items(name: str, content: Any) -> Iterator[dict[str, Any]]:
    if content is None:
        return
    if not isinstance(content, dict):
        raise errors.Rejected(f"not an object of Kubernetes: {name}", hint="write a map")
    if content.get("kind") == "List" and isinstance(content.get("items"), list):
        for each in content["items"]:
            yield from _items(name, each)
    else:
        yield content


def _manifest(name: str, body: dict[str, Any], namespace: str) -> Manifest:
    meta = body.get("metadata")
    version, kind = body.get("apiVersion"), body.get("kind")
    if not isinstance(meta, dict) or not isinstance(version, str) or not isinstance(kind, str):
        raise errors.Rejected(
            f"not an object of Kubernetes: {name}", hint="give apiVersion, kind and metadata"
        )
    group, _, short = version.rpartition("/")
    ref = ObjectRef(group, short, kind, str(meta.get("name", "")))
    if not kinds.NAME.fullmatch(ref.name):
        raise _wrong(name, ref, "has no name that Kubernetes takes", "set metadata.name")
    if kinds.resource(ref) is None:
        raise _wrong(name, ref, "is of a kind that is not served", "see the list of kinds")
    if meta.get("namespace", namespace) != namespace:
        told = f"is for another namespace than {namespace}: {str(meta['namespace'])[:63]}"
        raise _wrong(name, ref, told, "leave metadata.namespace out")
    if own := [each for each in _SERVERS_OWN if each in meta]:
        raise _wrong(name, ref, f"sets metadata.{own[0]}", "leave it out")
    if ref.kind == "Secret" and body.get("type") == _TOKEN:
        raise _wrong(name, ref, "asks for a token of a service account", "leave it out")
    kept = {key: value for key, value in body.items() if key != "status"}
    return Manifest(ref, {**kept, "metadata": {**meta, "namespace": namespace}})


def _wrong(name: str, ref: ObjectRef, told: str, hint: str) -> errors.Rejected:
    return errors.Rejected(f"{ref.kind} {ref.name[:63]} {told} ({name})", hint=hint)
