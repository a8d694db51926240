"""The log files of a workload's processes, from their end or from where a reader stopped."""

from collections.abc import Callable, Sequence
from pathlib import Path

from fairlead import errors
from fairlead.areas.rollouts.local import envoy_mapping
from fairlead.areas.rollouts.workload_logs import LogLine, LogPage, LogRequest

_MOST_BYTES = 256 * 1024
"""Of one process, in one answer."""


def read(folder: Path, request: LogRequest, runs: Callable[[str], bool]) -> LogPage:
    """Lines of the processes that run, or of all of one revision."""
    offsets = _offsets(request.after)
    lines: list[LogLine] = []
    places: list[str] = []
    for program in _programs(folder, request, runs):
        source = program.partition(".")[2]
        start = offsets.get(source, 0) if request.after else None
        found, end = _piece(folder / f"{program}.log", start)
        kept = found if request.after else found[-request.tail :]
        lines += [LogLine(source, text) for text in kept]
        places.append(f"{source}:{end}")
    return LogPage(lines, ",".join(places) or request.after)


def _programs(folder: Path, request: LogRequest, runs: Callable[[str], bool]) -> Sequence[str]:
    found = []
    for path in sorted(folder.glob("*.log")):
        if envoy_mapping.workload_of(path.stem) != request.name:
            continue
        held = envoy_mapping.slot_of(path.stem)
        if held is not None and (held[1] == request.revision or not request.revision):
            found.append(path.stem)
    return found if request.revision else [each for each in found if runs(each)]


def _piece(path: Path, start: int | None) -> tuple[list[str], int]:
    """Whole lines from a place, or from near the end, and the place after them."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            if start is None:
                start = max(0, size - _MOST_BYTES)
            elif start > size:
                # It was rotated: the file is emptied, and its writer goes on at the start.
                start = 0
            file.seek(start)
            data = file.read(_MOST_BYTES)
    except FileNotFoundError:
        return [], 0
    whole = data.rpartition(b"\n")[0] + b"\n" if b"\n" in data else b""
    if not whole and len(data) == _MOST_BYTES:
        # A line without end must not be waited for.
        whole = data
    return whole.decode(errors="replace").splitlines(), start + len(whole)


def _offsets(after: str) -> dict[str, int]:
    pairs = [each.rpartition(":") for each in after.split(",") if each]
    if not all(source and place.isdecimal() and len(place) < 19 for source, _, place in pairs):  # noqa: PLR2004 - digits of a place in any file
        raise errors.Rejected(f"not a place in a log: {after[:80]}", hint="use next of a page")
    return {source: int(place) for source, _, place in pairs}
