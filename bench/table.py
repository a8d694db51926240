"""All results as one table: figures as they are, ratios with x, each with its spread."""

import math
from collections.abc import Iterator, Sequence

from bench.harness import Result

Row = tuple[str, str, str, str]


def drawn(results: Sequence[Result]) -> str:
    head: Row = ("benchmark", "measurement", "value", "spread")
    rows = [head, *(row for result in results for row in _rows(result))]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"{a:{widths[0]}}  {b:{widths[1]}}  {c:>{widths[2]}}  {d}".rstrip() for a, b, c, d in rows
    ]
    return "\n".join([lines[0], "-" * len(max(lines, key=len)), *lines[1:]])


def _rows(result: Result) -> Iterator[Row]:
    for name, value in result.measurements.items():
        yield result.name, name, _text(value), _spread(result, name, "")
    for name, ratio in result.ratios.items():
        yield result.name, f"ratio {name}", f"{_text(ratio)} x", _spread(result, name, " x")


def _spread(result: Result, name: str, unit: str) -> str:
    if name not in result.spread:
        return ""
    low, high = result.spread[name]
    return f"{_text(low)} … {_text(high)}{unit}"


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if value and abs(value) < 100:
        digits = max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:.{digits}f}"
    return f"{value:,.0f}"
