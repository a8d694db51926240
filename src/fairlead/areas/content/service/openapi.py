"""The description of the API that is served, made from what is served."""

from typing import Any

import msgspec

from fairlead.areas.content.service.catalogue import Catalogue

_JSON: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}


def document(served: Catalogue) -> bytes:
    paths: dict[str, Any] = {path: _operation("What is served.") for path in served.exact}
    for before, after in served.selected:
        paths[f"{before}{{version}}{after}"] = _operation(
            "What is served for a version.", selected=True
        )
    for path in served.documents:
        paths[path] = {
            "get": {
                "summary": "This description.",
                "responses": {"200": {"description": "OpenAPI.", "content": _JSON}},
            }
        }
    info = {"title": f"Content: {served.name}", "version": "1"}
    return msgspec.json.encode({"openapi": "3.0.3", "info": info, "paths": paths})


def _operation(summary: str, *, selected: bool = False) -> dict[str, Any]:
    responses: dict[str, Any] = {
        "200": {"description": "The content, by channel of who asks.", "content": _JSON},
        "304": {"description": "The client has it already."},
        "431": {"description": "A header is too long.", "content": _JSON},
    }
    operation: dict[str, Any] = {"summary": summary, "responses": responses}
    if selected:
        responses["400"] = {"description": "Not a semantic version.", "content": _JSON}
        responses["404"] = {"description": "Below the first version.", "content": _JSON}
        operation["parameters"] = [
            {"name": "version", "in": "path", "required": True, "schema": {"type": "string"}}
        ]
    return {"get": operation}
