"""The story as people see it: a live line on a terminal, plain lines anywhere else."""

import contextlib
import time
from collections.abc import Iterator

from rich import console as consoles
from rich import progress as progress_

_PLAIN_STEP = 0.1


class Screen:
    """Talks on standard error."""

    def __init__(self, trips: int) -> None:
        self._trips = trips
        self._console = consoles.Console(stderr=True, highlight=False)
        self._bar: progress_.Progress | None = None
        self._task = progress_.TaskID(0)
        self._start: float | None = None
        self._next_line = _PLAIN_STEP

    @contextlib.contextmanager
    def live(self) -> Iterator[None]:
        """The moving line, where there is a terminal to move it on."""
        if not self._console.is_terminal:
            yield
            return
        with _bar(self._console) as bar:
            self._task = bar.add_task("trips", total=self._trips, transitions="0", rate="0")
            self._bar = bar
            try:
                yield
            finally:
                self._bar = None

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def progress(self, home: int, transitions: int) -> None:
        if self._start is None:
            self._start = time.monotonic()
        rate = transitions / max(time.monotonic() - self._start, 0.1)
        if self._bar is not None:
            self._bar.update(
                self._task, completed=home, transitions=f"{transitions:,}", rate=f"{rate:,.0f}"
            )
        elif not self._console.is_terminal and home >= self._next_line * self._trips:
            self._next_line = home / self._trips + _PLAIN_STEP
            done = f"{home} of {self._trips} trips home"
            self.say(f"{done}, {transitions:,} transitions, {rate:,.0f} a second")


def _bar(console: consoles.Console) -> progress_.Progress:
    return progress_.Progress(
        progress_.TextColumn("{task.description}"),
        progress_.BarColumn(),
        progress_.MofNCompleteColumn(),
        progress_.TextColumn("{task.fields[transitions]} transitions"),
        progress_.TextColumn("{task.fields[rate]}/s"),
        progress_.TimeElapsedColumn(),
        console=console,
    )
