"""What two versions of a content serve, line by line, for whoever reviews one of them.

Whoever may read a release may ask for it as often as they like, and a live page asks at each event.
So each pair is loaded once, and one pair at a time.
"""

import asyncio
import difflib
import itertools
import json
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from fairlead import errors
from fairlead.areas.content import loader
from fairlead.areas.content.description import Description

_MOST_KEPT = 8
_MOST_LINES = 1000
_LONGEST_LINE = 500
_SECONDS = 60.0


class Differences:
    """Those that were asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Sequence[str]] = OrderedDict()
        self._busy = False

    async def of(self, content: Description, old: str, new: str) -> Sequence[str]:
        """Rejected where a version does not load; Unavailable while two others are loaded."""
        key = msgspec.json.encode((content, old, new), order="sorted")
        if key not in self._kept:
            if self._busy:
                hint = "ask again in a few seconds"
                raise errors.Unavailable("two versions are being compared already", hint=hint)
            self._busy = True
            try:
                self._kept[key] = await _compared(content, old, new)
            finally:
                self._busy = False
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return self._kept[key]


async def _compared(content: Description, old: str, new: str) -> Sequence[str]:
    try:
        async with asyncio.timeout(_SECONDS):
            loaded = [await loader.load(content, each) for each in (old, new)]
    except TimeoutError as error:
        hint = "is the source slow? fairlead content check asks it as well"
        raise errors.Unavailable(f"not loaded within {_SECONDS:g} s", hint=hint) from error
    first, second = map(_files, loaded)
    lines: list[str] = []
    for file in sorted({*first, *second}):
        before, after = first.get(file, []), second.get(file, [])
        lines += difflib.unified_diff(before, after, f"{old}/{file}", f"{new}/{file}", lineterm="")
    return [line.rstrip("\n")[:_LONGEST_LINE] for line in lines[:_MOST_LINES]]


def _files(loaded: loader.Loaded) -> dict[str, list[str]]:
    bodies = itertools.chain.from_iterable(
        each.bodies for each in loaded.edition.documents.values()
    )
    return {
        body.file: json.dumps(json.loads(body.data), indent=1, ensure_ascii=False).splitlines()
        for body in bodies
    }
