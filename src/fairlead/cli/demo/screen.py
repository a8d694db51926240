"""The story as people see it: a live picture on a terminal, plain lines anywhere else."""

import contextlib
from collections.abc import Iterator

from rich import console as consoles
from rich import live as lives
from rich import table
from rich import text as texts

from fairlead.areas.rollouts.commands import progress
from fairlead.cli.demo.frames import TRAIL, Frame, Side

_BAR = 60
_WIDE = 90
_PLAIN_SECONDS = 4.0
_CURVE = "▁▂▃▄▅▆▇█"
_FLOOR = 60.0
"""In percent; the curve shows what is above it."""

_STYLES = {"primary": "cyan", "canary": "yellow"}
_FILLS = {"primary": "█", "canary": "▒"}
_NOTHING = "·"


class Screen:
    """Talks on standard error."""

    def __init__(self) -> None:
        self._console = consoles.Console(stderr=True, highlight=False)
        self._live: lives.Live | None = None
        self._next_line = 0.0

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """The picture, where there is a terminal to draw it on; it stays as it was last."""
        if not self._console.is_terminal:
            yield
            return
        with lives.Live(console=self._console, auto_refresh=False) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def say(self, words: str, seconds: float | None = None) -> None:
        """A line that stays."""
        line = texts.Text()
        if seconds is not None:
            line.append(f"{_clock(seconds)}  ", "dim")
        line.append(words)
        self._console.print(line, soft_wrap=self._live is None)

    def draw(self, frame: Frame) -> None:
        if self._live is not None:
            wide = self._console.width >= _WIDE
            self._live.update(_picture(frame, wide=wide), refresh=True)
        elif not self._console.is_terminal and frame.seconds >= self._next_line:
            self._next_line = frame.seconds + _PLAIN_SECONDS
            for side in frame.sides:
                if side.requests:
                    self.say(f"  {_plain(side)}", frame.seconds)


def _picture(frame: Frame, *, wide: bool) -> consoles.Group:
    headline = texts.Text(frame.headline, "bold", overflow="ellipsis", no_wrap=True)
    parts: list[consoles.RenderableType] = ["", headline, _bar(frame), ""]
    parts.append(_sides(frame, wide=wide))
    if frame.watched and frame.checks:
        parts += ["", _checks(frame)]
    return consoles.Group(*parts)


def _bar(frame: Frame) -> texts.Text:
    bar = texts.Text()
    for side in frame.sides:
        width = round(_BAR * side.weight / 100)
        bar.append(_FILLS[side.slot] * width, _STYLES[side.slot])
    weights = " · ".join(f"{side.version} {side.weight} %" for side in frame.sides)
    return bar.append(f"  {weights}")


def _sides(frame: Frame, *, wide: bool) -> table.Table:
    shown = table.Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column("version", no_wrap=True)
    shown.add_column("slot", no_wrap=True)
    for name in ("weight", "requests", "failed", "success", "p50", "p99"):
        shown.add_column(name, justify="right", min_width=5, no_wrap=True)
    if wide:
        shown.add_column("success per second", min_width=TRAIL, no_wrap=True)
    for side in frame.sides:
        style = _STYLES[side.slot]
        trail = [texts.Text("".join(map(_height, side.trail)), style)] if wide else []
        shown.add_row(
            texts.Text(f"{_FILLS[side.slot]} {side.version}", style),
            side.slot,
            f"{side.weight} %",
            f"{side.requests:,}",
            texts.Text(f"{side.failed:,}", "bold red" if side.failed else ""),
            _percent(side.success),
            _time(side.p50_ms),
            _time(side.p99_ms),
            *trail,
        )
    return shown


def _checks(frame: Frame) -> table.Table:
    shown = table.Table(box=None, show_header=False, pad_edge=False)
    for check in frame.checks:
        counted, _, result = check.reason.partition("; ")
        told = result if "measurement" in counted else check.reason
        shown.add_row(
            texts.Text(f"check {check.name}", "dim"),
            check.good,
            progress.result(check),
            texts.Text(told, "dim"),
        )
    return shown


def _plain(side: Side) -> str:
    success = f"success {_percent(side.success)}"
    times = f"p50 {_time(side.p50_ms)}, p99 {_time(side.p99_ms)}"
    return (
        f"{side.version} {side.weight} %, {side.requests:,} requests, {side.failed:,} failed,"
        f" {success}, {times}"
    )


def _height(success: float | None) -> str:
    if success is None:
        return _NOTHING
    part = max(0.0, (success - _FLOOR) / (100 - _FLOOR))
    return _CURVE[min(int(part * len(_CURVE)), len(_CURVE) - 1)]


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def _time(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
