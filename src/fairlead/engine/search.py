"""Finding streams by their attributes, each filter by whichever of its clauses fits fewest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.engine import filters
from fairlead.engine.store import protocol

_MOST_COUNTED = 1000
"""Beyond it, which of two clauses fits fewer streams is not worth knowing."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a page may be."""

    rows: int
    bytes: int


def page(
    session: protocol.Session, where: filters.Where, bounds: Bounds, values: Mapping[str, Any]
) -> tuple[list[tuple[Any, ...]], bool]:
    """Rows of streams that meet every clause, newest first, and whether more follow."""
    first = _first(session, where)
    every = msgspec.json.encode(where.clauses).decode()
    asked = {**values, "machine": where.machine, "name": first.name, "clauses": every}
    if not first.points:
        ((low, high),) = first.ranges
        return session.page(
            "streams_by_range", bounds.rows, bounds.bytes, **asked, low=low, high=high
        )
    # Each value's streams lie in the index in the order of the list, so a page of each is enough.
    pages = [
        session.page("streams_by_value", bounds.rows, bounds.bytes, **asked, value=value)
        for value in first.points
    ]
    return _merged(pages, bounds.rows)


def _merged(
    pages: Sequence[tuple[list[tuple[Any, ...]], bool]], most: int
) -> tuple[list[tuple[Any, ...]], bool]:
    """Pages as one. What lies behind the end of a page that was cut is not known to be next."""
    ends = [rows[-1][0] for rows, more in pages if more]
    found = [row for rows, _ in pages for row in rows if row[0] >= max(ends, default=0)]
    kept = sorted(found, key=lambda row: row[0], reverse=True)[:most]
    return kept, bool(ends) or sum(len(rows) for rows, _ in pages) > len(kept)


def _first(session: protocol.Session, where: filters.Where) -> filters.Clause:
    """The clause to begin with: a store has no figures of its own for every value."""
    if len(where.clauses) == 1:
        return where.clauses[0]

    def fits(clause: filters.Clause) -> tuple[int, bool]:
        asked = {"machine": where.machine, "name": clause.name, "most": _MOST_COUNTED}
        counts = [
            session.rows("count_values", **asked, low=low, high=high)[0][0]
            for low, high in clause.ranges
        ]
        return sum(counts), not clause.points

    return min(where.clauses, key=fits)
