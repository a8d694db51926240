"""From descriptions to types of resources: Swagger 2.0 and OpenAPI 3 alike.

A resource is a URL that can be read and written: GET or HEAD with PUT or PATCH, or with a POST on
its collection. Its bodies are compared property by property; its tree is that of all URLs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead.areas.resources.domain import urls
from fairlead.areas.resources.domain.classes import (
    ClassifiedProperty,
    Classifier,
    Methods,
    Overrides,
)
from fairlead.areas.resources.domain.documents import Documents, Located, refused
from fairlead.areas.resources.domain.schemas import Properties, Schemas

VERBS = ("GET", "HEAD", "PUT", "PATCH", "POST", "DELETE")
_READS = {"GET", "HEAD"}
_WRITES = {"PUT", "PATCH"}
_UNSAID = "default"
_JSON = "json"
_REPEATS = {"idempotency-key", "x-idempotency-key", "idempotencykey", "repeatability-request-id"}


class ResourceType(msgspec.Struct, frozen=True):
    """One type of resource in one version of its API."""

    type: str
    version: str
    url: str
    verbs: list[str]
    parent: str | None
    """The type that it stands below, or none at the top."""

    lro: dict[str, str]
    """Verbs whose answer comes later, each with where its end is looked for."""

    paging: str | None
    """The property of a list that holds the link to the next page."""

    create: str | None
    """Where a POST makes one, where the server gives the name."""

    properties: list[ClassifiedProperty]
    is_listed: bool = False
    """Whether GET of what it is in shows all of them."""

    repeat_header: str = ""
    """That makes a POST said twice count once; empty where the API takes none."""


@dataclass(frozen=True, slots=True)
class _Operations:
    """What can be asked at one URL."""

    at: Mapping[str, Located]
    """By verb."""

    version: str


def read(
    documents: Documents, entries: Sequence[str], overrides: Mapping[str, Overrides]
) -> list[ResourceType]:
    """Types of the entries, which are read together: all versions of what stands in them."""
    found: dict[str, dict[str, _Operations]] = {}
    for entry in entries:
        version, paths = _paths(documents, entry)
        for url, operations in paths:
            known = found.setdefault(version, {}).get(url)
            at = {**known.at, **operations} if known else operations
            found[version][url] = _Operations(at, version)
    schemas = Schemas(documents, entries)
    return [
        each
        for version in sorted(found)
        for each in _Reader(documents, schemas, found[version], overrides).types()
    ]


def is_description(node: Any) -> bool:
    return isinstance(node, dict) and ("swagger" in node or "openapi" in node)


def _paths(
    documents: Documents, entry: str
) -> tuple[str, Iterator[tuple[str, dict[str, Located]]]]:
    root = documents.document(entry)
    info = root.node.get("info")
    version = str((info if isinstance(info, dict) else {}).get("version") or "")
    if not version:
        raise refused(entry, "no version", "say it as info.version", "info.version")
    paths = root.node.get("paths") or {}
    more = root.node.get("x-ms-paths") or {}
    if not isinstance(paths, dict) or not isinstance(more, dict):
        raise refused(entry, "paths are not an object", "mend the description", "paths")
    return version, ((url, _operations(documents, root, paths[url])) for url in paths)


def _operations(documents: Documents, root: Located, node: Any) -> dict[str, Located]:
    item = documents.resolved(root.part(node))
    shared = item.node.get("parameters") or []
    found = {}
    for verb in VERBS:
        operation = item.node.get(verb.lower())
        if isinstance(operation, dict):
            own = operation.get("parameters") or []
            found[verb] = item.part({**operation, "parameters": [*shared, *own]})
    return found


@dataclass(frozen=True, slots=True)
class _Reader:
    documents: Documents
    schemas: Schemas
    operations: Mapping[str, _Operations]
    overrides: Mapping[str, Overrides]
    classifier: Classifier = field(default_factory=Classifier)

    def types(self) -> Iterator[ResourceType]:
        tree = urls.tree(self.operations)
        resources = {url for url in tree if self._is_resource(url)}
        for url in tree:
            if url in resources:
                yield self._type(url, _above(url, tree, resources))

    def _is_resource(self, url: str) -> bool:
        verbs = set(self.operations[url].at)
        return bool(verbs & _READS) and bool(verbs & _WRITES or self._create(url))

    def _create(self, url: str) -> str | None:
        collection = urls.collection(url)
        known = self.operations.get(collection or "")
        return collection if known and "POST" in known.at else None

    def _type(self, url: str, parent: str | None) -> ResourceType:
        operations = self.operations[url]
        type_, create = urls.type_of(url), self._create(url)
        methods = Methods(
            get=self._shown(operations.at),
            put=self._taken(operations.at.get("PUT")),
            post=self._taken(self.operations[create].at["POST"]) if create else {},
            patch=self._taken(operations.at.get("PATCH")),
        )
        return ResourceType(
            *(type_, operations.version, url, [verb for verb in VERBS if verb in operations.at]),
            parent=None if parent is None else urls.type_of(parent),
            lro={verb: said for verb, at in operations.at.items() if (said := _lro(at.node))},
            paging=self._paging(url),
            create=create,
            properties=self.classifier.classified(methods, self.overrides.get(type_, {})),
            is_listed="GET" in self._collected(url),
            repeat_header=self._repeat_header(self.operations[create].at["POST"]) if create else "",
        )

    def _shown(self, at: Mapping[str, Located]) -> Properties:
        """What GET answers; where only HEAD can be asked, what PUT answers."""
        verb = "GET" if "GET" in at else "PUT"
        answers = at[verb].node.get("responses") or {} if verb in at else {}
        for status in ("200", "201", "default" if verb == "GET" else ""):
            found = self._content(at[verb], answers[status]) if status in answers else None
            if found is not None:
                return self.schemas.properties(found)
        return {}

    def _taken(self, at: Located | None) -> Properties:
        if at is None:
            return {}
        for each in at.node["parameters"]:
            parameter = self.documents.resolved(at.part(each))
            if parameter.node.get("in") == "body":
                return self._listed(self._content(at, parameter.node))
        return self._listed(self._content(at, at.node.get("requestBody")))

    def _listed(self, schema: Located | None) -> Properties:
        return {} if schema is None else self.schemas.properties(schema)

    def _content(self, at: Located, node: Any) -> Located | None:
        """The schema of an answer or a body, in either form of description."""
        if not isinstance(node, dict):
            return None
        inner = self.documents.resolved(at.part(node))
        if isinstance(inner.node.get("schema"), dict):
            return inner.part(inner.node["schema"])
        for media, each in (inner.node.get("content") or {}).items():
            if _JSON in media and isinstance(each.get("schema"), dict):
                return inner.part(each["schema"])
        return None

    def _paging(self, url: str) -> str | None:
        listed = self._collected(url).get("GET")
        marked = listed.node.get("x-ms-pageable") if listed else None
        if not isinstance(marked, dict):
            return None
        return str(marked.get("nextLinkName") or "") or None

    def _collected(self, url: str) -> Mapping[str, Located]:
        """What can be asked of all resources of this URL together."""
        known = self.operations.get(urls.collection(url) or "")
        return known.at if known else {}

    def _repeat_header(self, at: Located) -> str:
        for each in at.node["parameters"]:
            said = self.documents.resolved(at.part(each)).node
            name = str(said.get("name") or "")
            if said.get("in") == "header" and name.lower() in _REPEATS:
                return name
        return ""


def _above(url: str, tree: Mapping[str, urls.Node], resources: set[str]) -> str | None:
    """The nearest resource that this one stands below."""
    parent = tree[url].parent
    while parent is not None and parent not in resources:
        parent = tree[parent].parent
    return parent


def _lro(node: Mapping[str, Any]) -> str:
    if node.get("x-ms-long-running-operation") is not True:
        return ""
    options = node.get("x-ms-long-running-operation-options")
    said = options.get("final-state-via") if isinstance(options, dict) else None
    return str(said or _UNSAID)
