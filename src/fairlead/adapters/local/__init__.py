"""Rollouts on this machine: versions as processes, an Envoy before each workload.

    async with Machine(folder).running(tell) as machine:
        await machine.keep(wish)
        handlers = effects.handlers(World(machine, machine, …))

What a workload is to be stands in a small file, a *berth*, which is written before anything is
done. Everything else follows from it, again and again: processes are started, Envoy is told of
those that are ready, and what the berth no longer names is drained and stopped. So a control plane
that dies at any point leaves a berth, processes and an Envoy that go on serving; the next one reads
the berth and goes on.

Flow: berths (what is wanted, on disk) -> workload (one of them: processes, then Envoy) -> machine
(all of them, as the ports of a rollout) · sampler (what became of the requests, each second).
"""

from fairlead.adapters.local.machine import Machine

__all__ = ["Machine"]
