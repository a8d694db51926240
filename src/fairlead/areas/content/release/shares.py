"""Who lets people into the canary: our own file, a ConfigMap, or a flag of Unleash."""

import asyncio
from pathlib import Path

from fairlead import errors
from fairlead.areas.content.domain.population import Population
from fairlead.areas.content.domain.release.place import Place
from fairlead.areas.content.release.kubernetes import Cluster
from fairlead.areas.content.service import own_share
from fairlead.clients.unleash_admin import Admin


class Shares:
    """Chooses by the place of a release who is told its share."""

    def __init__(self, folder: Path, cluster: Cluster | None, admin: Admin | None) -> None:
        self._folder = folder
        self._cluster = cluster
        self._admin = admin

    async def set(self, name: str, place: Place, chosen: Population) -> None:
        if place.flag is not None:
            if self._admin is None:
                raise errors.Unavailable(
                    "this control plane has no access to Unleash's admin API",
                    hint="set FAIRLEAD_CONTENT_UNLEASH_ADMIN_TOKEN, and the URL beside it",
                )
            await self._admin.set_rollout(place.flag, chosen.share // 100)
        elif place.kubernetes is not None:
            if self._cluster is None:
                raise no_cluster()
            text = own_share.encoded(chosen).decode()
            await self._cluster.set_share(place.kubernetes, text)
        else:
            await asyncio.to_thread(self._write, file(self._folder, name), chosen)

    def _write(self, at: Path, chosen: Population) -> None:
        try:
            at.parent.mkdir(parents=True, exist_ok=True)
            own_share.write(at, chosen)
        except OSError as error:
            raise errors.Unavailable(
                f"cannot write the share: {at}: {error.strerror}", hint="is the disk full?"
            ) from error


def file(folder: Path, name: str) -> Path:
    """Where the share of a content on this machine is."""
    return folder / "shares" / f"{stem(name)}.json"


def stem(name: str) -> str:
    """A name as one word for files and processes; no name of a content has this letter."""
    return name.replace("/", "_")


def no_cluster() -> errors.Unavailable:
    return errors.Unavailable(
        "this control plane has no access to a cluster", hint="set FAIRLEAD_CONTENT_KUBECONFIG"
    )
