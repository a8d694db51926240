"""Resources as an API shows them: one bounded question each, and nothing is written."""

from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Self
from urllib.parse import urlencode

from fairlead import errors
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.clients import credentials
from fairlead.clients.host_api import HostApi, Request

_URL, _TOKEN = "FAIRLEAD_RESOURCES_API_URL", "FAIRLEAD_RESOURCES_TOKEN_FILE"
_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ResourceApi:
    """One API, which speaks JSON and takes a version beside the address."""

    host: HostApi
    token: Path

    @classmethod
    def of(cls, chosen: ResourcesSettings) -> Self:
        if not chosen.resources_token_file:
            raise errors.Rejected(
                "nobody to ask the API as", hint=f"name a file with a token in {_TOKEN}"
            )
        host = HostApi("the API", chosen.resources_api_url, _URL, _SECONDS)
        return cls(host, Path(chosen.resources_token_file).expanduser())

    async def get(self, id_: str, version: str) -> Json | None:
        """None where there is none."""
        at = f"{id_}?{urlencode({'api-version': version})}"
        token = credentials.secret(self.token)
        async with self.host.open():
            status, body = await self.host.ask(Request("GET", at, id_), token)
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        if status != HTTPStatus.OK:
            raise errors.Rejected(
                f"the API refuses {id_}, status: {status}",
                hint="is it the id of a resource, and does the API know this version?",
            )
        shown = self.host.plain(body)
        if not isinstance(shown, dict):
            raise errors.Unavailable(f"the API shows no resource: {id_}", hint=f"check {_URL}")
        return shown
