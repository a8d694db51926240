"""Versions of a program as supervised processes on this machine.

    async with Supervisor(folder).running() as supervisor:
        await supervisor.ensure(Program("shop-v2", ("python", "shop.py")))
        instance = await supervisor.ready("shop-v2")

The processes are not bound to ours: each has a session of its own and writes its log
itself, so a control plane that ends or crashes leaves them running, and the next one on
the same folder takes them over by process id and start time.

Flow: program (what is wanted) -> records (kept on disk) -> supervisor -> keeper (one per
program: start, watch, restart) -> spawn, identity, health, logs (one deed each).
"""

from fairlead.clients.processes.logs import LogBounds
from fairlead.clients.processes.orphans import clean_up
from fairlead.clients.processes.program import Health, Limits, Patience, Program
from fairlead.clients.processes.state import Instance, Phase
from fairlead.clients.processes.supervisor import Supervisor

__all__ = [
    "Health",
    "Instance",
    "Limits",
    "LogBounds",
    "Patience",
    "Phase",
    "Program",
    "Supervisor",
    "clean_up",
]
