"""The process that the demo kills: an engine at work until its standard input ends.

Run as `python -m fairlead.cli.demo.worker FOLDER`. It says "ready" once it is at work. The
end of standard input also tells that whoever started it is gone, so it never stays behind.
"""

import asyncio
import contextlib
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from fairlead import bootstrap
from fairlead import settings as settings_
from fairlead.cli.demo import road, scene


def main(arguments: Sequence[str]) -> None:
    (folder,) = arguments
    bootstrap.logs(settings_.LogSettings(log_level="warning", log_format="json"))
    asyncio.run(work(Path(folder)))


async def work(folder: Path) -> None:
    with contextlib.closing(road.Road(folder)) as outside:
        players = scene.cast(scene.drivers(outside))
        async with bootstrap.engine(scene.settings(folder), players).running():
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            await _end_of_input()


async def _end_of_input() -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def wait() -> None:
        sys.stdin.buffer.read()
        with contextlib.suppress(RuntimeError):  # the loop has ended for another reason
            loop.call_soon_threadsafe(over.set)

    threading.Thread(target=wait, name="end-of-input", daemon=True).start()
    await over.wait()


if __name__ == "__main__":
    main(sys.argv[1:])
