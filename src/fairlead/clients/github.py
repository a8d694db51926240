"""GitHub's API, of github.com or an enterprise server: files, commits, check runs and statuses.

Who we are is a token, or a GitHub App that signs in with its key and gets a token for each
repository. With a token the host shows commit statuses; only an App may write check runs.
"""

import base64
import contextlib
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import aiohttp
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from fairlead import __version__, errors
from fairlead.clients import credentials, git

MOST_BYTES = 1024 * 1024
_SUMMARY = 1000
_DESCRIPTION = 140
_MOST_RUNS = 100
_LONGEST_PAUSE = 3600.0
_JWT_SECONDS = 540
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Account:
    """Where GitHub's API is, and who we are there."""

    url: str = "https://api.github.com"
    token_file: Path | None = None
    app_id: str = ""
    app_key_file: Path | None = None
    seconds: float = 10.0
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What is shown beside a commit; the same id again replaces what was shown."""

    repository: str
    commit: str
    name: str
    external_id: str
    state: Literal["pending", "success", "failure"]
    summary: str


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    at: str
    words: Mapping[str, Any] | None = None
    accept: str = "json"
    most: int = MOST_BYTES


class GitHub:
    """Asks the API; used inside `open`."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._session: aiohttp.ClientSession | None = None
        self._limited_until = 0.0
        self._tokens: dict[str, tuple[str, float]] = {}

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        # Redirects are not followed and no proxy is asked: a token goes to the host that was set.
        async with aiohttp.ClientSession(
            trust_env=False,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=self._account.seconds),
        ) as self._session:
            yield
        self._session = None

    async def read_file(self, repository: str, commit: str, path: str, most: int) -> bytes:
        """The file at that commit."""
        at = f"/repos/{repository}/contents/{quote(path)}?ref={quote(commit)}"
        asked = _Request("GET", at, accept="raw+json", most=most)
        status, body = await self._ask(repository, asked)
        if status == HTTPStatus.NOT_FOUND:
            raise git.missing_file(path, commit)
        return git.bounded(body, path, most)

    async def resolve(self, repository: str, ref: str) -> str:
        """The commit that a branch or tag is now."""
        name = ref.removeprefix("refs/")
        at = f"/repos/{repository}/commits/{quote(name)}"
        status, body = await self._ask(repository, _Request("GET", at, accept="sha"))
        found = body.decode(errors="replace").strip()
        missing = status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY)
        if missing or not _SHA.fullmatch(found):
            told = f"no {name[:80]} in {repository}"
            raise errors.NotFound(told, hint="push it, or check its name and the rights to read it")
        return found

    async def publish(self, report: CheckReport) -> None:
        """Show it beside the commit: as a check run of our App, else as a commit status."""
        if self._account.app_id:
            await self._publish_run(report)
            return
        words = {
            "state": report.state,
            "context": report.name,
            "description": report.summary[:_DESCRIPTION],
        }
        at = f"/repos/{report.repository}/statuses/{report.commit}"
        await self._must(report.repository, "POST", at, words)

    async def _publish_run(self, report: CheckReport) -> None:
        runs = f"/repos/{report.repository}/check-runs"
        words: dict[str, Any] = {
            "name": report.name,
            "head_sha": report.commit,
            "external_id": report.external_id,
            "output": {"title": report.name, "summary": report.summary[:_SUMMARY]},
        }
        if report.state == "pending":
            words["status"] = "in_progress"
        else:
            words |= {"status": "completed", "conclusion": report.state}
        # Made by a try whose answer was lost, or by what was shown before: changed, not doubled.
        found = await self._run_of(report)
        if found is None:
            await self._must(report.repository, "POST", runs, words)
        else:
            del words["head_sha"]
            await self._must(report.repository, "PATCH", f"{runs}/{found}", words)

    async def _run_of(self, report: CheckReport) -> int | None:
        name = quote(report.name, safe="")
        at = (
            f"/repos/{report.repository}/commits/{report.commit}/check-runs"
            f"?check_name={name}&filter=all&per_page={_MOST_RUNS}"
        )
        listed = _plain(await self._must(report.repository, "GET", at))
        runs = listed.get("check_runs", []) if isinstance(listed, dict) else []
        ours = (each["id"] for each in runs if each.get("external_id") == report.external_id)
        return next(ours, None)

    async def _must(
        self, repository: str, method: str, at: str, words: Mapping[str, Any] | None = None
    ) -> bytes:
        status, body = await self._ask(repository, _Request(method, at, words))
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise errors.Rejected(
                f"GitHub refused {method} in {repository}, status: {status.value}",
                hint="check the rights of the token or App, and that the commit is there",
            )
        return body

    async def _ask(self, repository: str, request: _Request) -> tuple[HTTPStatus, bytes]:
        return await self._send(request, await self._credential(repository))

    async def _send(self, request: _Request, credential: str) -> tuple[HTTPStatus, bytes]:
        if self._session is None:
            raise errors.Unavailable("GitHub is not open", hint="use it inside open()")
        if (left := self._limited_until - self._account.clock()) > 0:
            raise _limited(left)
        headers = {
            "Authorization": f"Bearer {credential}",
            "Accept": f"application/vnd.github.{request.accept}",
            "Accept-Encoding": "identity",
            "User-Agent": f"fairlead/{__version__}",
        }
        body = None if request.words is None else msgspec.json.encode(request.words)
        url = self._account.url.rstrip("/") + request.at
        try:
            async with self._session.request(
                request.method, url, data=body, headers=headers, allow_redirects=False
            ) as answer:
                # One more than allowed, so that a larger one is told from one that just fits.
                data = await _upto(answer, request.most + 1)
                self._judge(answer, repository_of(request.at))
                return HTTPStatus(answer.status), data
        except (TimeoutError, OSError, aiohttp.ClientError, ValueError) as error:
            raise errors.Unavailable(
                f"GitHub did not answer: {type(error).__name__}",
                hint="check FAIRLEAD_DEPLOYMENTS_GITHUB_URL and the network",
            ) from error

    def _judge(self, answer: aiohttp.ClientResponse, repository: str) -> None:
        status = answer.status
        pause = _pause(answer, self._account.clock())
        limited = status in (HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)
        if limited and pause is not None:
            self._limited_until = self._account.clock() + pause
            raise _limited(pause)
        if status == HTTPStatus.UNAUTHORIZED and self._tokens:
            # Of an App's installation, revoked before its time: the next try gets another.
            self._tokens.clear()
            raise errors.Unavailable("the App's token is no longer good", hint="it is tried again")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise errors.Forbidden(
                f"GitHub does not let us into {repository}, status: {status}",
                hint="check the token or App and its rights to this repository",
            )
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
            raise errors.Unavailable(f"GitHub answered {status}", hint="it is tried again")
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise errors.Rejected(
                f"GitHub redirects, status: {status}", hint="name the repository as it is now"
            )

    async def _credential(self, repository: str) -> str:
        account = self._account
        if account.app_id and account.app_key_file is not None:
            return await self._installation_token(repository, account.app_key_file)
        if account.token_file is None:
            raise errors.Rejected(
                "no token for GitHub is set", hint="set FAIRLEAD_DEPLOYMENTS_GITHUB_TOKEN_FILE"
            )
        return credentials.secret(account.token_file)

    async def _installation_token(self, repository: str, key_file: Path) -> str:
        token, until = self._tokens.get(repository, ("", 0.0))
        now = self._account.clock()
        if now < until:
            return token
        signed = app_jwt(self._account.app_id, key_file, now)
        asked = _Request("GET", f"/repos/{repository}/installation")
        status, body = await self._send(asked, signed)
        if status != HTTPStatus.OK:
            raise errors.Forbidden(
                f"the GitHub App is not installed in {repository}", hint="install it there"
            )
        at = f"/app/installations/{_plain(body)['id']}/access_tokens"
        _, body = await self._send(_Request("POST", at), signed)
        token = str(_plain(body)["token"])
        # They live an hour; half of it is left for calls that are under way.
        self._tokens[repository] = (token, now + _LONGEST_PAUSE / 2)
        return token


def app_jwt(app_id: str, key_file: Path, now: float) -> str:
    """What a GitHub App shows to get a token: signed by its key, good for minutes."""
    try:
        key = serialization.load_pem_private_key(key_file.expanduser().read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise errors.Rejected(
            f"cannot read the key of the GitHub App: {key_file}", hint="use its PEM file"
        ) from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise errors.Rejected(f"not an RSA key: {key_file}", hint="use the PEM file of the App")
    # Issued a minute ago: clocks differ.
    claims = {"iat": int(now) - 60, "exp": int(now) + _JWT_SECONDS, "iss": app_id}
    parts = [
        _encoded(msgspec.json.encode(each)) for each in ({"alg": "RS256", "typ": "JWT"}, claims)
    ]
    text = b".".join(parts)
    signature = key.sign(text, padding.PKCS1v15(), hashes.SHA256())
    return b".".join((text, _encoded(signature))).decode()


def repository_of(at: str) -> str:
    """Of the path of a request, for what is said of it."""
    parts = at.split("/")
    return "/".join(parts[2:4]) if at.startswith("/repos/") else "the API"


def _pause(answer: aiohttp.ClientResponse, now: float) -> float | None:
    """How long we are asked to wait; None where a refusal is no limit."""
    given = answer.headers
    try:
        if "Retry-After" in given:
            return min(max(float(given["Retry-After"]), 1.0), _LONGEST_PAUSE)
        if given.get("x-ratelimit-remaining") == "0":
            reset = float(given.get("x-ratelimit-reset", now + 60))
            return min(max(reset - now, 1.0), _LONGEST_PAUSE)
    except ValueError:
        return 60.0
    return None


def _limited(pause: float) -> errors.Unavailable:
    return errors.Unavailable(
        f"GitHub's rate limit is reached, for {pause:.0f} s", hint="it is tried again after that"
    )


async def _upto(answer: aiohttp.ClientResponse, most: int) -> bytes:
    data = b""
    while len(data) < most and (part := await answer.content.read(most - len(data))):
        data += part
    return data


def _plain(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise errors.Unavailable("GitHub sent no JSON", hint="it is tried again") from error


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
