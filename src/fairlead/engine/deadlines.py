"""Ends tasks that take too long, at the price of a dictionary's entry for those that do not.

A timer of the event loop for each task costs several times what a short task itself does. Tasks
with one limit end in the order in which they began, if they do not end by themselves; so one
timer, set for the oldest of them, serves all.
"""

import asyncio
from collections import defaultdict


class Deadlines:
    """The tasks that have a limit, by how long it is."""

    def __init__(self) -> None:
        self._lines: defaultdict[float, _Line] = defaultdict(_Line)

    def begin(self, task: "asyncio.Task[None]", started: float, seconds: float) -> None:
        """Cancel this task when its time is over; started is a time of the loop."""
        line = self._lines[seconds]
        line.due[task] = started + seconds
        if line.timer is None:
            line.look()

    def end(self, task: "asyncio.Task[None]", seconds: float) -> bool:
        """The task needs no limit any more; whether it was cancelled for its time was over."""
        return self._lines[seconds].due.pop(task, None) is None


class _Line:
    """Tasks with the same limit, in the order of their beginning."""

    def __init__(self) -> None:
        self.due: dict[asyncio.Task[None], float] = {}
        self.timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        over = []
        self.timer = None
        for task, due in self.due.items():
            if due > now:
                self.timer = loop.call_at(due, self.look)
                break
            over.append(task)
        for task in over:
            del self.due[task]
            task.cancel()
