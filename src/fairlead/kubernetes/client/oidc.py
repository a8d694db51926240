"""An OpenID Connect identity from a kubeconfig: the id token, renewed by the refresh token.

The renewed tokens are kept in memory only; the kubeconfig belongs to a person and is not
written to. An issuer that gives each refresh token once will therefore ask for a new login
after a restart.
"""

import asyncio
import base64
import binascii
import dataclasses
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import msgspec

from fairlead.errors import Unauthorised, Unavailable
from fairlead.kubernetes.client import clock as clocks
from fairlead.kubernetes.client.credentials import Identity

_MARGIN = timedelta(seconds=30)
_TIMEOUT = aiohttp.ClientTimeout(total=20.0)
_WELL_KNOWN = "/.well-known/openid-configuration"


@dataclasses.dataclass(frozen=True, slots=True)
class OidcSpec:
    """What a kubeconfig's auth-provider `oidc` holds."""

    issuer: str
    client_id: str
    client_secret: str = dataclasses.field(default="", repr=False)
    id_token: str = dataclasses.field(default="", repr=False)
    refresh_token: str = dataclasses.field(default="", repr=False)
    ca: bytes | None = dataclasses.field(default=None, repr=False)


class Oidc:
    """Gives the id token, and asks the issuer for the next one before it ends."""

    def __init__(self, spec: OidcSpec, clock: clocks.Clock) -> None:
        self._spec = spec
        self._clock = clock
        self._lock = asyncio.Lock()
        self._id_token = spec.id_token
        self._refresh_token = spec.refresh_token

    def __repr__(self) -> str:
        return f"Oidc({self._spec.issuer!r}, client_id={self._spec.client_id!r})"

    async def current(self) -> Identity:
        async with self._lock:
            if not self._id_token or self._has_ended():
                await self._renew()
            return Identity(token=self._id_token)

    def refused(self, identity: Identity) -> bool:
        if identity.token == self._id_token:
            self._id_token = ""
        return bool(self._refresh_token)

    def _has_ended(self) -> bool:
        ends = expiry(self._id_token)
        return ends is not None and self._clock.now() >= ends - _MARGIN

    async def _renew(self) -> None:
        if not self._refresh_token:
            raise Unauthorised(
                f"the id token has expired and there is no refresh token: {self._spec.issuer}",
                hint="log in again with the tool that wrote the kubeconfig",
            )
        try:
            async with aiohttp.ClientSession(timeout=_TIMEOUT) as session:
                answer = await self._ask(session)
        except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError):
            # No cause: the request that it may quote carries the refresh token.
            raise Unavailable(
                f"the identity provider did not answer: {self._spec.issuer}",
                hint="check that it can be reached from here",
            ) from None
        self._id_token = str(answer["id_token"])
        self._refresh_token = str(answer.get("refresh_token") or self._refresh_token)

    async def _ask(self, session: aiohttp.ClientSession) -> Mapping[str, Any]:
        trust = ssl.create_default_context(
            cadata=self._spec.ca.decode() if self._spec.ca is not None else None
        )
        async with session.get(self._spec.issuer.rstrip("/") + _WELL_KNOWN, ssl=trust) as found:
            found.raise_for_status()
            endpoint = msgspec.json.decode(await found.read())["token_endpoint"]
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._refresh_token,
            "client_id": self._spec.client_id,
            "client_secret": self._spec.client_secret,
        }
        async with session.post(endpoint, data=form, ssl=trust) as given:
            answer = msgspec.json.decode(await given.read()) if given.ok else {}
        if not isinstance(answer, dict) or not answer.get("id_token"):
            raise Unauthorised(
                f"the identity provider gave no new id token: {self._spec.issuer}",
                hint="log in again with the tool that wrote the kubeconfig",
            )
        return answer


def expiry(token: str) -> datetime | None:
    """When a JSON web token ends, read without checking it: the API server does that."""
    parts = token.split(".")
    try:
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        )
        return datetime.fromtimestamp(float(claims["exp"]), UTC)
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error, msgspec.MsgspecError):
        return None
