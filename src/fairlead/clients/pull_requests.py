"""Pull requests at GitHub, GitLab and Gitea: one for each branch, opened, renamed and closed."""

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from fairlead import errors
from fairlead.clients import credentials
from fairlead.clients.host_api import HostApi, Request

_SETTING = "FAIRLEAD_CONTENT_GIT_URL"
_MOST_PAGES = 40
_PAGE = "per_page=20&limit=20"
"""In the words of each host; GitHub's requests have 25 KB, and an answer is bounded."""


@dataclass(frozen=True, slots=True)
class Merge:
    """What a pull request asks for."""

    head: str
    base: str
    title: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One of the host."""

    number: int
    url: str
    asks: Merge
    commit: str
    merged: bool
    own: bool
    """From the repository itself: a fork may have a branch of the same name."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What became of a commit that somebody is asked to merge."""

    url: str
    refused: bool = False
    """Somebody closed it instead."""


@dataclass(frozen=True, slots=True)
class RequestApi:
    """How one kind of host wants to be asked."""

    name: str
    requests: Callable[[str], str]
    """Where those of a repository are."""

    query: Callable[[str, Merge], str]
    words: Callable[[Merge], Mapping[str, Any]]
    read: Callable[[Any], Listed]
    method: str
    closed: Mapping[str, str]
    opened: str = "open"
    """Its word for those that wait."""


def _pull(it: Any) -> Listed:
    head, base = it["head"], it["base"]
    # A fork that was deleted has none.
    home = (head.get("repo") or {}).get("full_name")
    asks = Merge(head["ref"], base["ref"], it["title"])
    own = home == base["repo"]["full_name"]
    return Listed(it["number"], it["html_url"], asks, head["sha"], bool(it["merged_at"]), own)


def _merge_request(it: Any) -> Listed:
    asks = Merge(it["source_branch"], it["target_branch"], it["title"])
    own = it["source_project_id"] == it["project_id"]
    return Listed(it["iid"], it["web_url"], asks, it["sha"], bool(it["merged_at"]), own)


def _pull_words(asked: Merge) -> Mapping[str, Any]:
    return {"title": asked.title, "head": asked.head, "base": asked.base}


def _of_owner(repository: str, asked: Merge) -> str:
    head = quote(f"{repository.partition('/')[0]}:{asked.head}", safe="")
    return f"head={head}&base={quote(asked.base, safe='')}"


def _of_branches(_: str, asked: Merge) -> str:
    source, target = quote(asked.head, safe=""), quote(asked.base, safe="")
    return f"source_branch={source}&target_branch={target}"


HOSTS: Mapping[str, RequestApi] = {
    "github": RequestApi(
        "GitHub",
        lambda repository: f"/repos/{repository}/pulls",
        _of_owner,
        _pull_words,
        _pull,
        "PATCH",
        {"state": "closed"},
    ),
    "gitlab": RequestApi(
        "GitLab",
        lambda repository: f"/api/v4/projects/{quote(repository, safe='')}/merge_requests",
        _of_branches,
        lambda it: {"title": it.title, "source_branch": it.head, "target_branch": it.base},
        _merge_request,
        "PUT",
        {"state_event": "close"},
        "opened",
    ),
    "gitea": RequestApi(
        "Gitea",
        lambda repository: f"/api/v1/repos/{repository}/pulls",
        lambda *_: "sort=recentupdate",
        _pull_words,
        _pull,
        "PATCH",
        {"state": "closed"},
    ),
}


class PullRequests:
    """Those of one repository; used inside `open`."""

    def __init__(
        self, host: RequestApi, api: HostApi, repository: str, token_file: Path | None
    ) -> None:
        self._host = host
        self._api = api
        self._repository = repository
        self._at = host.requests(repository)
        self._token_file = token_file

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self._api.open():
            yield

    async def ensure(self, wanted: Merge, commit: str) -> Standing:
        """One is open for the commit, under this title, unless somebody has closed that."""
        if found := await self._find(wanted, self._host.opened):
            if found.asks.title != wanted.title:
                await self._change(found, {"title": wanted.title})
            return Standing(found.url)
        # Opened once more, it would ask again and again for what was refused.
        if closed := await self._find(wanted, "closed", commit):
            return Standing(closed.url, refused=True)
        made = await self._ask("POST", self._at, self._host.words(wanted))
        return Standing(self._read(made).url)

    async def close(self, unwanted: Merge) -> None:
        """None is open from that branch to the other."""
        if found := await self._find(unwanted, self._host.opened):
            await self._change(found, self._host.closed)

    async def _change(self, found: Listed, words: Mapping[str, str]) -> None:
        await self._ask(self._host.method, f"{self._at}/{found.number}", words)

    async def _find(self, wanted: Merge, state: str, commit: str = "") -> Listed | None:
        """Page by page, as not every host can be asked for those of one branch."""
        query = f"{self._host.query(self._repository, wanted)}&state={state}"
        for page in range(1, _MOST_PAGES + 1):
            listed = await self._ask("GET", f"{self._at}?{query}&{_PAGE}&page={page}")
            if not isinstance(listed, list) or not listed:
                return None
            for each in map(self._read, listed):
                same = each.asks.head == wanted.head and each.asks.base == wanted.base
                if each.own and same and not each.merged and commit in {"", each.commit}:
                    return each
        return None

    async def _ask(self, method: str, at: str, words: Mapping[str, Any] | None = None) -> Any:
        if self._token_file is None:
            hint = "set FAIRLEAD_CONTENT_GIT_TOKEN_FILE"
            raise errors.Rejected(f"no token for {self._host.name} is set", hint=hint)
        asked = Request(method, at, self._repository, words)
        status, body = await self._api.ask(asked, credentials.secret(self._token_file))
        if status >= HTTPStatus.BAD_REQUEST:
            raise errors.Rejected(
                f"{self._host.name} refused {method} of a pull request in {self._repository},"
                f" status: {status.value}",
                hint="check its branches, and that the token may open pull requests",
            )
        return self._api.plain(body)

    def _read(self, listed: Any) -> Listed:
        try:
            return self._host.read(listed)
        except (LookupError, TypeError, AttributeError) as error:
            raise errors.Unavailable(
                f"{self._host.name} sent no pull request", hint="it is tried again"
            ) from error


def pull_requests(provider: str, where: str, token_file: Path | None) -> PullRequests:
    """Of the repository that is fetched from there; its API is on the same host."""
    if provider not in HOSTS:
        known = ", ".join(HOSTS)
        raise errors.Rejected(f"unknown kind of git host: {provider[:40]}", hint=f"use {known}")
    host, parsed = HOSTS[provider], urlsplit(where)
    url = f"{parsed.scheme}://{parsed.netloc.rpartition('@')[2]}"
    if provider == "github":
        url = "https://api.github.com" if parsed.hostname == "github.com" else f"{url}/api/v3"
    repository = parsed.path.strip("/").removesuffix(".git")
    api = HostApi(host.name, url, _SETTING)
    return PullRequests(host, api, repository, token_file)
