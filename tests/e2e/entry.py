"""`fairlead up` or `worker` with the sample machines: what the installed one does with its own.

Run as `python -m tests.e2e.entry up|worker|slow`. The slow one says "begun" on the first
leg, and ends it when it hears SIGUSR1.
"""

import asyncio
import signal
import sys
from dataclasses import replace

from fairlead.cli import serve
from fairlead.engine import outbox
from fairlead.engine.sample.messages import Arrive, DriveLeg
from tests.unit.web import rig


async def slow(effect: DriveLeg, _: outbox.EffectContext) -> Arrive:
    if effect.leg > 1:
        return Arrive(effect.leg)
    arrived = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, arrived.set)
    print("begun", file=sys.stderr, flush=True)  # noqa: T201 - the test waits for this line
    await arrived.wait()
    return Arrive(effect.leg)


SLOW = replace(rig.CAST, handlers={DriveLeg: outbox.Handler(slow)})

if __name__ == "__main__":
    role = sys.argv[1]
    cast = SLOW if role == "slow" else rig.CAST
    serve.run(cast.settings(), cast, pages=role != "worker")
