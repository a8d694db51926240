"""Who asks, by what a gateway in front says of them: Red Hat's header `x-rh-identity`.

It carries no signature. Only a gateway that removes it from requests of others can vouch for it, so
it is read only where the settings say that there is one.
"""

import base64
import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from fairlead.areas.content.service.catalogue import HeaderMap, Identity, Refusal

HEADER = "X-Rh-Identity"
MISSING = Refusal(401, "Missing auth token")
INVALID = Refusal(401, "Invalid/Malformed auth token")
_LONGEST_KEPT = 2048
_ALPHABET = str.maketrans("-_", "+/")


def identity(claim: str) -> Identity:
    """By the field of the header at that path, such as `identity.system.cluster_id`."""
    path = tuple(claim.split("."))
    kept = functools.lru_cache(maxsize=4096)(functools.partial(_found, path))

    def identify(headers: HeaderMap) -> str | Refusal:
        sent = headers.get(HEADER.lower(), "")
        if not sent:
            return MISSING
        return (kept(sent) if len(sent) <= _LONGEST_KEPT else _found(path, sent)) or INVALID

    return Identity(HEADER, identify)


def _found(path: Sequence[str], sent: str) -> str:
    """Empty where it is not what a gateway sends, or says nothing of that kind."""
    plain = sent.rstrip("=").translate(_ALPHABET)
    try:
        raw = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        found: Any = msgspec.json.decode(raw)
    # The last one: what is nested too deeply.
    except (ValueError, msgspec.DecodeError, RecursionError):
        return ""
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""
