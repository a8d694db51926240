"""Events as the JSON of `shapes.Event`, made from the text that the store keeps.

An event may be a megabyte. Decoding it, checking it against a model and encoding it again would
keep the event loop busy for tens of milliseconds each; its stored text is copied instead, and on
the thread that read it.
"""

from collections.abc import Sequence

import msgspec

from fairlead.engine import visibility
from fairlead.web import redaction

MEDIA_TYPE = "application/json"
_encode = msgspec.json.Encoder().encode


def event(view: visibility.EventView) -> bytes:
    """One event that was read with `visibility.raw`."""
    return redaction.encoded(_encode(view.told()))


def page(events: Sequence[visibility.EventView], further: str | None, **beside: object) -> bytes:
    """A page of them, and where to go on."""
    items = [view.told() for view in events]
    return redaction.encoded(_encode({"items": items, "next": further, **beside}))
