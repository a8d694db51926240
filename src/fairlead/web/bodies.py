"""A request's body as a type of ours or as a form, or Rejected with what to send instead."""

from typing import Any, TypeVar
from urllib.parse import parse_qs

import msgspec
import pydantic
from fastapi import Request

from fairlead import errors
from fairlead.web import errors as web_errors

_MOST_FIELDS = 8
Shape = TypeVar("Shape", bound=pydantic.BaseModel)


async def read(request: Request, shape: type[Shape], hint: str) -> Shape:
    try:
        return shape.model_validate(await plain(request))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "body"
        raise errors.Rejected(
            f"malformed {shape.__name__.lower()}: {where}: {first['msg']}", hint=hint
        ) from error


async def plain(request: Request) -> Any:
    """The body as plain data, whatever it is to be."""
    # A form of a foreign page cannot send this type without asking the browser first.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise errors.Rejected(
            f"not a JSON body: {kind[:80] or 'no content type'}",
            hint="send Content-Type: application/json",
        )
    try:
        # Stricter than the standard library: no NaN, no half of a surrogate pair.
        return msgspec.json.decode(await request.body())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.Rejected(f"malformed JSON: {error}", hint="check the body") from error


async def form(request: Request, most: int, hint: str = "send less") -> dict[str, str]:
    """The fields of a page's form, each once; Rejected where there is more than it can hold."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise web_errors.TooLarge(f"the form is larger than {most} bytes", hint=hint)
    try:
        found = parse_qs(body.decode(errors="replace"), max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise errors.Rejected("malformed form", hint=hint) from error
    return {name: told[0] for name, told in found.items()}
