"""Calls over the web, for gates, numbers and news: few, signed, bounded, and to known hosts only.

Signed as the Standard Webhooks are, so that receivers need no code of ours: `webhook-id` is the
same for every try of one question, `webhook-timestamp` is when it was sent, `webhook-signature`
is "v1," and the HMAC-SHA256, in base64, of id, timestamp and body with dots between them.
"""

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import random
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import aiohttp
import msgspec

from fairlead import __version__, errors
from fairlead.clients import credentials

MOST_BYTES = 64 * 1024
MOST_WORDS = 200
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 2.0
_ENCODED_SECRET = "whsec_"  # noqa: S105 - how such a secret begins
_LATER = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
_ORDINARY_PORTS = {"http": 80, "https": 443}
ACCEPTED = (HTTPStatus.OK, HTTPStatus.CREATED, HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT)
"""What a receiver answers that has taken what it was sent."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """Whom we may call: origins, as `scheme, host, port`; no port is the scheme's own."""

    allowed: tuple[tuple[str, str, int | None], ...] = ()

    @classmethod
    def read(cls, text: str) -> "Hosts":
        """From a list such as `gate.example, *.shop.example:8443, http://127.0.0.1:9000`."""
        return cls(tuple(_origin(one.strip()) for one in text.split(",") if one.strip()))

    def check(self, url: str) -> SplitResult:
        """The address in parts; Rejected unless an operator has allowed its host."""
        parts = _parts(url)
        if not any(_fits(parts, *origin) for origin in self.allowed):
            raise errors.Rejected(
                f"host may not be called: {parts.scheme}://{parts.netloc[:200]}",
                hint="ask the operator to add it to FAIRLEAD_HOOKS_HOSTS",
            )
        return parts


@dataclass(frozen=True, slots=True)
class Call:
    """One question to the web; `key` tells the receiver that a second try is the same one."""

    url: str
    key: str
    body: bytes | None = None
    """Posted; without one, the page is read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    body: bytes

    @property
    def words(self) -> str:
        """The start of it as a sentence may quote it."""
        text = self.body[: MOST_WORDS * 4].decode(errors="replace")
        plain = "".join(each if each.isprintable() else " " for each in text)
        return " ".join(plain.split())[:MOST_WORDS]


@dataclass(frozen=True, slots=True)
class Manners:
    """How we call."""

    deadline_seconds: float = 10.0
    secret_file: Path | None = None
    ca_file: Path | None = None
    clock: Callable[[], float] = time.time


class Hooks:
    """Makes calls; used inside `open`."""

    def __init__(self, manners: Manners) -> None:
        self._manners = manners
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(
            limit=100, ssl=credentials.authority(self._manners.ca_file)
        )
        # A small answer can unpack into a huge one, so nothing is unpacked.
        async with aiohttp.ClientSession(
            connector=connector,
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as self._session:
            yield
        self._session = None

    async def call(self, call: Call) -> Reply:
        """The reply; Unavailable where none came within the deadline, however often we tried."""
        seconds = self._manners.deadline_seconds
        trouble = _Trouble()
        try:
            async with asyncio.timeout(seconds):
                return await self._insist(call, trouble)
        except TimeoutError as error:
            raise errors.Unavailable(
                f"{shown(call.url)} did not answer within {seconds:g} s: {trouble.last}",
                hint="check that it runs and can be reached from here",
            ) from error

    async def _insist(self, call: Call, trouble: "_Trouble") -> Reply:
        pause = FIRST_PAUSE
        while True:
            try:
                # One that hangs must leave time for another try.
                async with asyncio.timeout(self._manners.deadline_seconds / 2):
                    reply, wait = await self._once(call)
            except aiohttp.ClientConnectorCertificateError as error:
                raise errors.Rejected(
                    f"{shown(call.url)} has a certificate that is not trusted:"
                    f" {error.certificate_error}",
                    hint="set the CA file in FAIRLEAD_HOOKS_CA_FILE",
                ) from error
            except (OSError, aiohttp.ClientError) as error:
                trouble.last, wait = _told(error), 0.0
            else:
                if reply.status not in _LATER:
                    return reply
                trouble.last = f"status {reply.status} {reply.words}".strip()
            await asyncio.sleep(max(wait, pause * random.uniform(0.5, 1.0)))  # noqa: S311 - spreads tries
            pause = min(LONGEST_PAUSE, pause * 2)

    async def _once(self, call: Call) -> tuple[Reply, float]:
        if self._session is None:
            raise errors.Unavailable("web calls are not open", hint="use them inside open()")
        method = "GET" if call.body is None else "POST"
        headers = self._headers(call)
        async with self._session.request(
            method, call.url, data=call.body, headers=headers, allow_redirects=False
        ) as answer:
            if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
                raise errors.Rejected(
                    f"{shown(call.url)} redirects, status: {answer.status}",
                    hint="use the final address; redirects are not followed",
                )
            return Reply(answer.status, await _body(call.url, answer)), _retry_after(answer)

    def _headers(self, call: Call) -> dict[str, str]:
        sent_at = str(int(self._manners.clock()))
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"fairlead/{__version__}",
            "webhook-id": call.key,
            "webhook-timestamp": sent_at,
        }
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if self._manners.secret_file is not None:
            # Read for each call, so that a rotated secret is picked up; while two are in use,
            # each has its signature, and a receiver takes the one it knows.
            keys = credentials.secrets(self._manners.secret_file)
            signed = (signature(secret, call.key, sent_at, call.body or b"") for secret in keys)
            headers["webhook-signature"] = " ".join(signed)
        return headers


@dataclass(slots=True)
class _Trouble:
    last: str = "no answer"


def signature(secret: str, key: str, sent_at: str, body: bytes) -> str:
    """What the receiver computes as well, and compares."""
    content = f"{key}.{sent_at}.".encode() + body
    digest = hmac.new(_raw(secret), content, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def key(*parts: str) -> str:
    """The same for every try of one question, and never used for another."""
    return f"fl_{hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:32]}"


def refusal(url: str, reply: Reply) -> errors.FairleadError:
    """The error for an answer that was not asked for."""
    said = f"{shown(url)} answers with status {reply.status}: {reply.words}"
    if reply.status == HTTPStatus.UNAUTHORIZED:
        return errors.Unauthorised(said, hint="check the secret on both sides, and their clocks")
    return errors.Rejected(said, hint="see what it wants of us, or name another address")


def shown(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _told(error: Exception) -> str:
    """What went wrong; the library's own sentence for an answer repeats the whole address."""
    if isinstance(error, aiohttp.ClientResponseError):
        return f"invalid HTTP answer: {error.message[:MOST_WORDS]}"
    return str(error)[:MOST_WORDS] or _Trouble().last


def _raw(secret: str) -> bytes:
    if not secret.startswith(_ENCODED_SECRET):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_ENCODED_SECRET), validate=True)
    except binascii.Error as error:
        raise errors.Rejected(
            f"secret begins with {_ENCODED_SECRET} and is not base64",
            hint="write it as it was given, or without that beginning",
        ) from error


async def _body(url: str, answer: aiohttp.ClientResponse) -> bytes:
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise errors.Rejected(
            f"{shown(url)} answers with an encoding that was not requested",
            hint="let it send plain text",
        )
    found = b""
    async for part in answer.content.iter_any():
        found += part
        if len(found) > MOST_BYTES:
            raise errors.Rejected(
                f"{shown(url)} answers with more than {MOST_BYTES} bytes",
                hint="make it answer with less",
            )
    return found


def _retry_after(answer: aiohttp.ClientResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _malformed(url) from error
    if parts.scheme not in _ORDINARY_PORTS or not parts.hostname or port == 0:
        raise _malformed(url)
    if parts.username is not None or not url.isprintable() or " " in url:
        raise _malformed(url)
    return parts


def _malformed(url: str) -> errors.Rejected:
    shown_ = url.rpartition("@")[2].partition("?")[0][:200]
    return errors.Rejected(
        f"malformed address: {shown_!r}",
        hint="use https://, a host, and perhaps a port and a path; no user name",
    )


def _origin(text: str) -> tuple[str, str, int | None]:
    scheme, _, rest = text.rpartition("://")
    parts = _parts(f"{scheme or 'https'}://{rest}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise errors.Rejected(
            f"not a host: {text[:200]}", hint="write gate.example, or http://gate.example:8080"
        )
    return parts.scheme, parts.hostname or "", parts.port


def _fits(parts: SplitResult, scheme: str, host: str, port: int | None) -> bool:
    name = (parts.hostname or "").rstrip(".")
    same_host = name.endswith(host[1:]) if host.startswith("*.") else name == host
    asked = parts.port or _ORDINARY_PORTS[parts.scheme]
    return parts.scheme == scheme and same_host and asked == (port or _ORDINARY_PORTS[scheme])
