"""What leaves this server without the secrets that people write into addresses.

A check may call https://gate.example/?token=…, and its spec stands in events, states and effects.
Who may look at a release need not know that token: every answer, page and log line shows it as
`…`, while what is stored stays as it was given, for it is called with it.
"""

from typing import Any

from starlette.responses import JSONResponse

from fairlead import values


class RedactedJson(JSONResponse):
    """The answer of every route that returns data."""

    def render(self, content: Any) -> bytes:
        return encoded(super().render(content))


def encoded(data: bytes) -> bytes:
    """JSON without them; most has no address in it, and is left as it is."""
    return values.redacted(data.decode()).encode() if b"://" in data else data


def shown(value: object) -> object:
    """A value on its way into a page."""
    return values.redacted(value) if isinstance(value, str) else value
