"""What was applied last, as it is kept: every path, but no secret and no large value.

A value that may not be shown, or is large, is kept as a keyed digest, so that removed and changed
paths are found all the same. Without the key a digest tells nothing of a short secret.
"""

import hashlib
import hmac
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.areas.resources.domain.model import NOTHING, Json, Model, Place, by_key

_LARGEST_BYTES = 256
_MARK = "fairlead.dev/digest"


@dataclass(frozen=True, slots=True)
class Seal:
    """Keeps values so that they can be compared, and no more."""

    key: bytes

    def sealed(self, model: Model, spec: Json) -> Json:
        """Of the same shape."""
        kept = self._kept(model, Place(), spec)
        assert isinstance(kept, dict)
        return kept

    def kept(self, model: Model, place: Place, value: Any) -> Any:
        """One value that is compared as a whole."""
        data = _data(value)
        if len(data) > _LARGEST_BYTES or model.has_secret(place, value):
            return {_MARK: self._digest(data)}
        return value

    def is_same(self, value: Any, kept: Any) -> bool:
        """Whether this is what was kept."""
        if isinstance(kept, dict) and set(kept) == {_MARK}:
            return hmac.compare_digest(str(kept[_MARK]), self._digest(_data(value)))
        return are_alike(value, kept)

    def digest(self, value: Any) -> str:
        """Tells the same value, and nothing of what it is."""
        return self._digest(_data(value))

    def _kept(self, model: Model, place: Place, value: Any) -> Any:
        if isinstance(value, dict) and value:
            return {
                name: self._kept(model, model.inside(place, name) or place, each)
                for name, each in value.items()
            }
        if isinstance(value, list) and by_key(place, value):
            return [self._kept(model, model.item(place), each) for each in value]
        return self.kept(model, place, value)

    def _digest(self, data: bytes) -> str:
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()


def with_attempted(model: Model, spec: Json, applied: Json, attempted: Json) -> Json:
    """What was applied, and whatever else may have been that the spec no longer has.

    So what a write brought whose end was never heard of goes with its declaration.
    """
    kept = _joined(model, Place(), spec, applied, attempted)
    assert isinstance(kept, dict)
    return kept


def are_alike(one: Any, other: Any) -> bool:
    """As JSON: 1 and 1.0 are the same number, true is none."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def _joined(model: Model, place: Place, spec: Any, applied: Any, attempted: Any) -> Any:
    if isinstance(spec, dict) and isinstance(attempted, dict):
        return _members(model, place, spec, applied, attempted)
    if isinstance(spec, list) and isinstance(attempted, list):
        wanted, tried = by_key(place, spec), by_key(place, attempted)
        known = by_key(place, applied) if isinstance(applied, list) else {}
        if wanted is not None and tried is not None and known is not None:
            more = [each for key, each in tried.items() if key not in {*wanted, *known}]
            return [*known.values(), *more] if more else applied
    return applied


def _members(model: Model, place: Place, spec: Json, applied: Any, attempted: Json) -> Any:
    found = dict(applied) if isinstance(applied, dict) else {}
    for name, tried in attempted.items():
        if name not in spec:
            found.setdefault(name, tried)
            continue
        inner, old = model.inside(place, name) or place, found.get(name, NOTHING)
        joined = _joined(model, inner, spec[name], old, tried)
        if joined is not NOTHING:
            found[name] = joined
    return found if found or isinstance(applied, dict) else applied


def _data(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")
