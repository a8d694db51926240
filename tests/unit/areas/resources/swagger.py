"""Descriptions for tests: small ones of our own, and real ones where they are at hand."""

from typing import Any

import pytest

from fairlead.areas.resources.domain import reading
from fairlead.areas.resources.domain.documents import Documents
from fairlead.areas.resources.domain.reading import ResourceType
from tests.architecture.sources import ROOT

AZURE = ROOT.parent / "shared" / "azure-specs" / "specification"
needs_azure = pytest.mark.skipif(not AZURE.is_dir(), reason="no Azure descriptions beside us")
SCOPE = "/subscriptions/{subscriptionId}/resourceGroups/{group}/providers/Acme.Toys"
Json = dict[str, Any]


def ref(name: str) -> Json:
    return {"$ref": f"#/definitions/{name}"}


def operation(body: Json | None = None, shown: Json | None = None, **more: Any) -> Json:
    parameters = [{"name": "body", "in": "body", "schema": body}] if body else []
    answer = {"200": {"schema": shown}} if shown else {"204": {}}
    return {"parameters": parameters, "responses": answer, **more}


def swagger(paths: Json, definitions: Json | None = None, version: str = "2026-01-01") -> Json:
    info = {"title": "toys", "version": version}
    return {"swagger": "2.0", "info": info, "paths": paths, "definitions": definitions or {}}


def robots(definitions: Json, **verbs: Json) -> Json:
    """One type, whose GET shows Robot and whose PUT takes it unless `verbs` say otherwise."""
    usual = {"get": operation(shown=ref("Robot")), "put": operation(ref("Robot"))}
    return swagger({f"{SCOPE}/robots/{{name}}": usual | verbs}, definitions)


def read(*documents: Json, **more: Any) -> list[ResourceType]:
    files = {f"{number}.json": each for number, each in enumerate(documents)}
    return reading.read(Documents(files), list(files), more)


def classes(of: ResourceType) -> dict[str, tuple[str, str]]:
    return {each.path: (each.class_, each.provenance) for each in of.properties}
