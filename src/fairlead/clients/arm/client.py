"""One request to an API that speaks as Azure Resource Manager does, and what it answers.

Bounded in time and size. Redirects are not followed, no proxy is asked, and the URL of an operation
is used only where it is one of the same API: a token goes nowhere else. What an answer means for a
resource, and when to ask again, is decided by who asks.
"""

import contextlib
import datetime as dt
import email.utils
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

import aiohttp
import msgspec
import structlog

from fairlead import __version__, errors
from fairlead.clients.arm.identity import Credential

MOST_BYTES = 8 * 1024 * 1024
_ASYNC, _LOCATION, _RETRY = "Azure-AsyncOperation", "Location", "Retry-After"
_SAFE = "/()@:,;=!'*+$._-~"
_PORTS = {"https": 443, "http": 80}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Follow:
    """Where the end of an operation is told."""

    style: str
    """`azure-async-operation`: by a status in the body; `location`: by that of the answer."""

    url: str


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a resource."""

    method: str
    id: str
    version: str
    body: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    correlation: str = ""
    """The same for all requests of one piece of work, so that the API's logs tell them together."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered, whatever the status is."""

    status: int
    body: Any = None
    """Its JSON; None where there is none."""

    etag: str = ""
    follow: Follow | None = None
    retry_after: dt.timedelta | None = None
    request_id: str = ""
    """By which the API's own people find it."""

    location: str = ""
    """The id of what was made, where a header tells."""

    next_page: str = ""
    """The link to what comes next in a list, where a header tells."""


@dataclass(slots=True)
class Arm:
    """Asks the API; used inside `open`."""

    url: str
    credential: Credential
    setting: str
    """That names the API, for hints."""

    seconds: float = 30.0
    _session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with aiohttp.ClientSession(
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self.seconds),
        ) as self._session:
            yield
        self._session = None

    async def ask(self, question: Question) -> Answer:
        """Unavailable where nothing came back; whether it was done is not known then."""
        at = f"{self.url.rstrip('/')}{quote(question.id, safe=_SAFE)}{self._query(question)}"
        return await self._authorised(question, at)

    async def follow(self, at: Follow, correlation: str = "") -> Answer:
        if not self._is_own(at.url):
            raise errors.Rejected(
                "the URL of an operation is of another API", hint=f"check {self.setting}"
            )
        return await self._authorised(Question("GET", "", "", correlation=correlation), at.url)

    def _query(self, question: Question) -> str:
        return f"?{urlencode({'api-version': question.version})}"

    def _authorisation(self, token: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {token}"}

    async def _authorised(self, question: Question, url: str) -> Answer:
        if self._session is None:
            raise errors.Unavailable("the API is not open", hint="use it inside open()")
        token = await self.credential.token(self._session)
        answer = await self._tried(question, url, token)
        if answer.status == HTTPStatus.UNAUTHORIZED and self.credential.forget(token):
            # It ended or was revoked before its time; nothing was done with it.
            token = await self.credential.token(self._session)
            answer = await self._tried(question, url, token)
        return answer

    async def _tried(self, question: Question, url: str, token: str) -> Answer:
        try:
            return await self._sent(question, url, token)
        except (TimeoutError, OSError, aiohttp.ClientError, ValueError) as error:
            raise errors.Unavailable(
                f"the API did not answer: {type(error).__name__}",
                hint=f"check {self.setting} and the network",
            ) from error

    async def _sent(self, question: Question, url: str, token: str) -> Answer:
        assert self._session is not None
        headers = {
            **self._authorisation(token),
            "Accept": "application/json",
            "User-Agent": f"fairlead/{__version__}",
            "x-ms-client-request-id": str(uuid.uuid4()),
            **question.headers,
        }
        if question.correlation:
            named = uuid.uuid5(uuid.NAMESPACE_URL, question.correlation)
            headers["x-ms-correlation-request-id"] = str(named)
        data = None
        if question.body is not None:
            headers["Content-Type"] = "application/json"
            data = msgspec.json.encode(question.body)
        async with self._session.request(
            question.method, url, data=data, headers=headers, allow_redirects=False
        ) as answer:
            return self._read(answer, await _bounded(answer), url)

    def _read(self, answer: aiohttp.ClientResponse, data: bytes, asked: str) -> Answer:
        headers = answer.headers
        return Answer(
            answer.status,
            _json(data),
            headers.get("ETag", ""),
            self._follow(answer, asked),
            _retry_after(headers.get(_RETRY, "")),
            headers.get("x-ms-request-id", ""),
            *self._links(answer, asked),
        )

    def _links(self, answer: aiohttp.ClientResponse, asked: str) -> tuple[str, str]:
        """The id of what was made, and the next page of a list, where they are of this API."""
        following = answer.links.get("next")
        made, more = "", str(following.get("url", "")) if following else ""
        if answer.status == HTTPStatus.CREATED and answer.headers.get(_LOCATION):
            url = urljoin(asked, answer.headers[_LOCATION])
            base = urlsplit(self.url).path.rstrip("/")
            path = urlsplit(url).path
            if self._is_own(url) and path.startswith(f"{base}/"):
                made = unquote(path.removeprefix(base))
        return made, more

    def _follow(self, answer: aiohttp.ClientResponse, asked: str) -> Follow | None:
        """Azure's own header first, whatever the status; Location only of what is not done."""
        style = "azure-async-operation"
        said = answer.headers.get(_ASYNC, "")
        if not said and answer.status == HTTPStatus.ACCEPTED:
            style, said = "location", answer.headers.get(_LOCATION, "")
        if not said:
            return None
        url = urljoin(asked, said)
        if not self._is_own(url):
            # The resource itself tells its end too; a token for us is not for that host.
            _log.warning("operation_elsewhere", host=urlsplit(url).hostname)
            return None
        return Follow(style, url)

    def _is_own(self, url: str) -> bool:
        try:
            return _origin(url) == _origin(self.url)
        except ValueError:
            return False


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None:
        raise ValueError(url)
    return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme)


def _retry_after(said: str) -> dt.timedelta | None:
    """In seconds or as a date; None where it is neither."""
    if said.isascii() and said.isdigit() and len(said) <= len("31536000"):
        return dt.timedelta(seconds=int(said))
    try:
        at = email.utils.parsedate_to_datetime(said)
        return max(at - dt.datetime.now(dt.UTC), dt.timedelta(0))
    except (ValueError, TypeError, OverflowError):
        return None


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    while part := await answer.content.read(65_536):
        data += part
        if len(data) > MOST_BYTES:
            raise ValueError("larger than any resource")
    return bytes(data)


def _json(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data) if data else None
    except msgspec.DecodeError:
        return None
