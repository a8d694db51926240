"""Rollouts on this machine: versions as processes, an Envoy before each workload.

    async with LocalPlatform(folder).running(report) as platform:
        await platform.keep(request)
        performed = handlers.handlers(RolloutPorts(platform, platform, …))

The desired state of a workload is a small file, which is written before anything is done.
Everything else follows from it, again and again: processes are started, Envoy routes to those
that are ready, and what the file no longer names is drained and stopped. So a control plane that
dies at any point leaves the file, processes and an Envoy that keep serving; the next one reads
the file and continues.

Flow: desired_state (on disk) -> workload (one of them: processes, then Envoy) -> platform
(all of them, as the ports of a rollout) · envoy_stats (what became of the requests, each second).
"""

from fairlead.areas.rollouts.local.platform import LocalPlatform

__all__ = ["LocalPlatform"]
