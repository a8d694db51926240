"""Where in a JSON document something stands: JSON pointers, such as /data/0/rate (RFC 6901)."""

import re
from typing import Any

from fairlead import errors

MOST_CHARACTERS = 500
_SOUND = re.compile(r"(/([^~/]|~[01])*)*")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def checked(text: str) -> str:
    """The same text; Rejected where it is no pointer. Empty is the whole document."""
    if len(text) > MOST_CHARACTERS or not _SOUND.fullmatch(text) or not text.isprintable():
        raise errors.Rejected(
            f"malformed pointer into a page: {text[:80]!r}",
            hint="write it after #, as in https://shop.example/numbers#/data/0/rate",
        )
    return text


def find(content: Any, pointer: str) -> Any:
    """What stands there; None where nothing does."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(content, dict):
            content = content.get(key)
        elif isinstance(content, list) and _INDEX.fullmatch(key) and int(key) < len(content):
            content = content[int(key)]
        else:
            return None
    return content
