"""The description of the API that is served, made from what is served."""

from typing import Any

import msgspec

from fairlead.areas.content.service.catalogue import AUTHORIZATION, Catalogue
from fairlead.areas.content.service.gateway import HEADER

_NUMBER = r"(0|[1-9][0-9]{0,18})"
_LABEL = rf"({_NUMBER}|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_WORD = "[0-9a-zA-Z-]+"
_VERSION = rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_LABEL}(\.{_LABEL})*)?(\+{_WORD}(\.{_WORD})*)?$"
_SCHEMES = {
    AUTHORIZATION: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    HEADER: {"type": "apiKey", "in": "header", "name": HEADER},
}
"""Of those headers without which nobody is answered."""

_JSON: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}


def document(served: Catalogue) -> bytes:
    paths: dict[str, Any] = {path: _operation("What is served.") for path in served.exact}
    for before, after in served.selected:
        paths[f"{before}{{version}}{after}"] = _operation(
            "What is served for a version.", selected=True
        )
    info: dict[str, Any] = {"title": f"Content: {served.name}", "version": "1"}
    told: dict[str, Any] = {"openapi": "3.0.3", "info": info, "paths": paths}
    scheme = _SCHEMES.get(served.identity.header)
    if scheme is not None:
        for each in paths.values():
            each["get"]["security"] = [{"client": []}]
            each["get"]["responses"]["401"] = {
                "description": "Nobody says who asks.",
                "content": _JSON,
            }
        told["components"] = {"securitySchemes": {"client": scheme}}
    for path in served.documents:
        paths[path] = {
            "get": {
                "summary": "This description.",
                "responses": {"200": {"description": "OpenAPI.", "content": _JSON}},
            }
        }
    return msgspec.json.encode(told)


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
            {
                "name": "version",
                "in": "path",
                "required": True,
                "schema": {"type": "string", "pattern": _VERSION},
            }
        ]
    return {"get": operation}
