"""JSON as Go's encoder writes it, so that clients of the original get the same bytes.

Compact; maps by their keys in order; numbers are 64-bit floats; `<`, `>` and `&` are escaped.
"""

import math
import re
from decimal import Decimal
from typing import Any

_LARGE, _SMALL = 1e21, 1e-6
_ESCAPED = re.compile('[\x00-\x1f"\\\\<>&\u2028\u2029]')
_SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}
_SURROGATE = re.compile("[\ud800-\udfff]")


class Ordered(dict[str, Any]):
    """A map whose keys keep their order: the fields of a Go struct."""


def encode(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int() | float():
            return _number(float(value))
        case list() | tuple():
            return f"[{','.join(map(encode, value))}]"
        case dict():
            pairs = value.items() if isinstance(value, Ordered) else sorted(value.items())
            return f"{{{','.join(f'{_text(key)}:{encode(each)}' for key, each in pairs)}}}"
        case _:
            raise TypeError(f"no JSON: {type(value).__name__}")


def _text(text: str) -> str:
    whole = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return f'"{_ESCAPED.sub(_escape, whole)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("a number beyond 64 bits")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    # repr has the fewest digits that mean this number, as Go's encoder does.
    exact = Decimal(repr(value)).normalize()
    if _SMALL <= abs(value) < _LARGE:
        return format(exact, "f")
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    first, *rest = map(str, digits)
    mantissa = f"{first}.{''.join(rest)}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{exponent + len(rest):+d}"
