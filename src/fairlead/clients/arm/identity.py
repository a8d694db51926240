"""Who we are to Entra ID, or to whoever gives out tokens."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import quote

import aiohttp
import msgspec

from fairlead import errors
from fairlead.clients import credentials

EARLY_SECONDS = 300.0
"""A token is renewed this long before it ends: requests of a slow API take a while."""

_MOST_BYTES = 65_536
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class Credential(Protocol):
    """Gives tokens."""

    async def token(self, session: aiohttp.ClientSession) -> str: ...

    def forget(self, token: str) -> bool:
        """The API takes it no longer; whether there may be another."""
        ...


@dataclass(frozen=True, slots=True)
class FileToken:
    """A token that somebody else keeps fresh in a file."""

    file: Path

    async def token(self, _: aiohttp.ClientSession) -> str:
        return credentials.secret(self.file)

    def forget(self, token: str) -> bool:
        return credentials.secret(self.file) != token


class Application(NamedTuple):
    """An app registration, and where it signs in."""

    login_url: str
    tenant: str
    client_id: str
    secret_file: Path
    scope: str
    """Of the tokens: the API, with `/.default`."""

    is_assertion: bool = False
    """The file has a token of another issuer that Entra ID trusts: workload identity."""


class _Token(msgspec.Struct):
    access_token: str
    expires_in: float


@dataclass(slots=True, kw_only=True)
class _Renewed:
    """Keeps a token until it is about to end."""

    clock: Callable[[], float] = time.time
    _token: str = ""
    _until: float = 0.0
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def token(self, session: aiohttp.ClientSession) -> str:
        # A thousand requests that find it ended ask for one new token.
        async with self._lock:
            if self.clock() >= self._until:
                made = await self._asked(session)
                self._token = made.access_token
                self._until = self.clock() + max(made.expires_in - EARLY_SECONDS, 0.0)
            return self._token

    def forget(self, token: str) -> bool:
        if token == self._token:
            self._until = 0.0
        return True

    async def _asked(self, session: aiohttp.ClientSession) -> _Token:
        raise NotImplementedError


@dataclass(slots=True)
class ManagedIdentity(_Renewed):
    """The identity of the machine that we run on, which its metadata service knows."""

    url: str
    resource: str
    client_id: str = ""
    """Which one, where the machine has several."""

    async def _asked(self, session: aiohttp.ClientSession) -> _Token:
        asked = {"api-version": "2018-02-01", "resource": self.resource}
        asked |= {"client_id": self.client_id} if self.client_id else {}
        url = f"{self.url.rstrip('/')}/metadata/identity/oauth2/token"
        headers = {"Metadata": "true"}
        return await _token(
            session.get(url, params=asked, headers=headers, allow_redirects=False), self.resource
        )


@dataclass(slots=True)
class ClientSecret(_Renewed):
    """Signs in as an application, with its secret or a token that stands for it."""

    application: Application

    async def _asked(self, session: aiohttp.ClientSession) -> _Token:
        said = self.application
        url = f"{said.login_url.rstrip('/')}/{quote(said.tenant, safe='')}/oauth2/v2.0/token"
        form = {
            "grant_type": "client_credentials",
            "client_id": said.client_id,
            "scope": said.scope,
        }
        secret = credentials.secret(said.secret_file)
        if said.is_assertion:
            form |= {"client_assertion_type": _ASSERTION, "client_assertion": secret}
        else:
            form["client_secret"] = secret
        return await _token(session.post(url, data=form, allow_redirects=False), said.client_id)


async def _token(asked: AbstractAsyncContextManager[aiohttp.ClientResponse], of: str) -> _Token:
    try:
        async with asked as answer:
            body = await answer.content.read(_MOST_BYTES)
            status = answer.status
    except (TimeoutError, OSError, aiohttp.ClientError) as error:
        raise _away(type(error).__name__) from error
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise _away(str(status))
    if status != HTTPStatus.OK:
        raise errors.Forbidden(
            f"no token for {of}, status: {status}",
            hint="check the tenant, the client id and the secret, and whether that has ended",
        )
    try:
        # The metadata service writes its numbers as text.
        return msgspec.json.decode(body, type=_Token, strict=False)
    except msgspec.DecodeError as error:
        raise _away("no token in its answer") from error


def _away(why: str) -> errors.Unavailable:
    return errors.Unavailable(
        f"who gives out tokens did not answer: {why}", hint="check its URL and the network"
    )
