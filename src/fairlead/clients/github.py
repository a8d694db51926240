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
from typing import Any
from urllib.parse import quote

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from fairlead import errors
from fairlead.clients import credentials, git, host_api
from fairlead.clients.host_api import CheckReport, Request

_SUMMARY = 1000
_DESCRIPTION = 140
_MOST_RUNS = 100
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


class GitHub:
    """Asks the API; used inside `open`."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._tokens: dict[str, tuple[str, float]] = {}
        place = "FAIRLEAD_DEPLOYMENTS_GITHUB_URL"
        told = account.url, place, account.seconds, account.clock
        self._api = host_api.HostApi("GitHub", *told, forget=self._forget)

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._api.open():
            yield

    async def read_file(self, repository: str, commit: str, path: str, most: int) -> bytes:
        """The file at that commit."""
        at = f"/repos/{repository}/contents/{quote(path)}?ref={quote(commit)}"
        asked = _request("GET", at, accept="raw+json", most=most)
        status, body = await self._ask(repository, asked)
        if status == HTTPStatus.NOT_FOUND:
            raise git.missing_file(path, commit)
        return git.bounded(body, path, most)

    async def names(self, repository: str, commit: str, path: str) -> list[str]:
        """Of the plain files in a folder at that commit."""
        at = f"/repos/{repository}/contents/{quote(path)}?ref={quote(commit)}"
        status, body = await self._ask(repository, _request("GET", at))
        found = self._api.plain(body) if status == HTTPStatus.OK else None
        if not isinstance(found, list):
            raise git.missing_file(path, commit)
        return [str(each["name"]) for each in found if each.get("type") == "file"]

    async def resolve(self, repository: str, ref: str) -> str:
        """The commit that a branch or tag is now."""
        name = ref.removeprefix("refs/")
        at = f"/repos/{repository}/commits/{quote(name)}"
        status, body = await self._ask(repository, _request("GET", at, accept="sha"))
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
        listed = self._api.plain(await self._must(report.repository, "GET", at))
        runs = listed.get("check_runs", []) if isinstance(listed, dict) else []
        ours = (each["id"] for each in runs if each.get("external_id") == report.external_id)
        return next(ours, None)

    async def _must(
        self, repository: str, method: str, at: str, words: Mapping[str, Any] | None = None
    ) -> bytes:
        status, body = await self._ask(repository, _request(method, at, words))
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY):
            raise errors.Rejected(
                f"GitHub refused {method} in {repository}, status: {status.value}",
                hint="check the rights of the token or App, and that the commit is there",
            )
        return body

    async def _ask(self, repository: str, request: Request) -> tuple[HTTPStatus, bytes]:
        return await self._send(request, await self._credential(repository))

    async def _send(self, request: Request, credential: str) -> tuple[HTTPStatus, bytes]:
        return await self._api.ask(request, credential)

    def _forget(self) -> bool:
        had = bool(self._tokens)
        self._tokens.clear()
        return had

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
        asked = _request("GET", f"/repos/{repository}/installation")
        status, body = await self._send(asked, signed)
        if status != HTTPStatus.OK:
            raise errors.Forbidden(
                f"the GitHub App is not installed in {repository}", hint="install it there"
            )
        at = f"/app/installations/{self._api.plain(body)['id']}/access_tokens"
        _, body = await self._send(_request("POST", at), signed)
        token = str(self._api.plain(body)["token"])
        # They live an hour; half of it is left for calls that are under way.
        self._tokens[repository] = (token, now + host_api.LONGEST_PAUSE / 2)
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


def _request(
    method: str,
    at: str,
    words: Mapping[str, Any] | None = None,
    accept: str = "json",
    most: int = host_api.MOST_BYTES,
) -> Request:
    headers = {"Accept": f"application/vnd.github.{accept}"}
    return Request(method, at, repository_of(at), words, headers, most)


def repository_of(at: str) -> str:
    """Of the path of a request, for what is said of it."""
    parts = at.split("/")
    return "/".join(parts[2:4]) if at.startswith("/repos/") else "the API"


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
