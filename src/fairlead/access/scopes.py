"""Where a caller may ask: everywhere, or within one project or namespace.

A stream belongs to the scope that its key begins with: `rollout/payments/shop/UID`, which an object
in the namespace `payments` stands behind, belongs to `payments`. A stream whose key has one part
belongs to none, and is for callers without a scope. Who may not ask need not know what there is: a
stream outside of a caller's scope is told as one that does not exist.
"""

import re

from fairlead import errors
from fairlead.engine import messages

EVERYWHERE = ""
_FORM = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def parse(text: str) -> str:
    """A scope as people write it; empty is everywhere."""
    if text and not _FORM.fullmatch(text):
        raise errors.Rejected(
            f"not a project or namespace: {text[:80]}", hint="use letters, digits or . _ -"
        )
    return text


def of(stream: messages.StreamName) -> str:
    """The scope that a stream belongs to; empty for none."""
    _, first, *rest = stream.split("/")
    return first if rest else EVERYWHERE


def covers(scope: str, stream: messages.StreamName) -> bool:
    return scope in (EVERYWHERE, of(stream))


def check(scope: str, stream: messages.StreamName) -> None:
    """NotFound where the stream is outside of the scope."""
    if not covers(scope, stream):
        raise errors.NotFound(f"no such stream: {stream}", hint="list them with fairlead get")
