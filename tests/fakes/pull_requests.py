"""Pull requests of GitHub, GitLab and Gitea as their APIs document them, over HTTP."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from fairlead.clients.pull_requests import PullRequests, pull_requests

TOKEN = "recorded-token"  # noqa: S105 - of the recorded servers alone
REPOSITORY = "acme/ops"
_PAGE = 2


@dataclass
class Pull:
    """One request, in words of no host."""

    head: str
    base: str
    title: str
    commit: str
    state: str = "open"
    home: str = REPOSITORY

    def shown(self, number: int, url: str) -> dict[str, Any]:
        return {
            "number": number,
            "html_url": url,
            "title": self.title,
            "state": "closed" if self.state == "merged" else self.state,
            "merged_at": "2026-11-19T04:00:00Z" if self.state == "merged" else None,
            "head": {"ref": self.head, "sha": self.commit, "repo": {"full_name": self.home}},
            "base": {"ref": self.base, "repo": {"full_name": REPOSITORY}},
        }

    def shown_by_gitlab(self, number: int, url: str) -> dict[str, Any]:
        return {
            "iid": number,
            "web_url": url,
            "title": self.title,
            "state": "opened" if self.state == "open" else self.state,
            "merged_at": "2026-11-19T04:00:00Z" if self.state == "merged" else None,
            "source_branch": self.head,
            "target_branch": self.base,
            "sha": self.commit,
            "source_project_id": 7 if self.home == REPOSITORY else 8,
            "project_id": 7,
        }


@dataclass
class RequestHost:
    """All requests of one repository; `commit_of` says what a branch is now."""

    provider: str
    commit_of: Callable[[str], str] = lambda branch: f"commit of {branch}"
    pulls: list[Pull] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refusing: bool = False
    url: str = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["RequestHost"]:
        app = web.Application(middlewares=[self._gate])
        base = {
            "github": "/api/v3/repos/acme/ops/pulls",
            "gitlab": "/api/v4/projects/{project}/merge_requests",
            "gitea": "/api/v1/repos/acme/ops/pulls",
        }[self.provider]
        app.router.add_get(base, self._list)
        app.router.add_post(base, self._open)
        edit = app.router.add_put if self.provider == "gitlab" else app.router.add_patch
        edit(f"{base}/{{number}}", self._edit)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    def client(self, token_file: Any) -> PullRequests:
        return pull_requests(self.provider, f"{self.url}/{REPOSITORY}.git", token_file)

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return web.json_response({"message": "401 Unauthorized"}, status=401)
        # The whole path of a project, with its slash escaped.
        if request.match_info.get("project", REPOSITORY) != REPOSITORY:
            return web.json_response({"message": "404 Project Not Found"}, status=404)
        answer = await handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    async def _list(self, request: web.Request) -> web.Response:
        query = request.query
        waits = query["state"] in {"open", "opened"}
        found = [
            (number, each)
            for number, each in enumerate(self.pulls, 1)
            if (each.state == "open") is waits and self._chosen(each, query)
        ]
        start = (int(query["page"]) - 1) * _PAGE
        return web.json_response([self._shown(*it) for it in found[start : start + _PAGE]])

    def _chosen(self, pull: Pull, query: Any) -> bool:
        match self.provider:
            case "github":
                owner = pull.home.partition("/")[0]
                return (query["head"], query["base"]) == (f"{owner}:{pull.head}", pull.base)
            case "gitlab":
                asked = query["source_branch"], query["target_branch"]
                return asked == (pull.head, pull.base)
            case _:
                return True

    async def _open(self, request: web.Request) -> web.Response:
        said = await request.json()
        names = (
            ("source_branch", "target_branch") if self.provider == "gitlab" else ("head", "base")
        )
        head, base = (said[each] for each in names)
        own = [it for it in self.pulls if it.home == REPOSITORY and it.state == "open"]
        if self.refusing or any((it.head, it.base) == (head, base) for it in own):
            return web.json_response({"message": "exists already"}, status=409)
        self.pulls.append(Pull(head, base, said["title"], self.commit_of(head)))
        return web.json_response(self._shown(len(self.pulls), self.pulls[-1]), status=201)

    async def _edit(self, request: web.Request) -> web.Response:
        number, said = int(request.match_info["number"]), await request.json()
        pull = self.pulls[number - 1]
        pull.title = said.get("title", pull.title)
        closed = {"state": "closed"}, {"state_event": "close"}
        if said in closed:
            assert said == closed[self.provider == "gitlab"]
            pull.state = "closed"
        return web.json_response(self._shown(number, pull))

    def _shown(self, number: int, pull: Pull) -> dict[str, Any]:
        show = pull.shown_by_gitlab if self.provider == "gitlab" else pull.shown
        return show(number, f"{self.url}/acme/ops/{number}")
