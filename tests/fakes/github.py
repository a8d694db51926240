"""GitHub's API as far as we ask it, over HTTP: the paths, headers and answers that it documents."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

TOKEN = "ghp_recorded"  # noqa: S105 - of the recorded server alone
APP_TOKEN = "ghs_recorded"  # noqa: S105 - of the recorded server alone


@dataclass
class GitHubServer:
    """Repositories with files and branches; keeps what is shown beside commits."""

    files: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    """By repository, commit and path."""

    refs: dict[tuple[str, str], str] = field(default_factory=dict)
    """Commits by repository and `heads/…` or `tags/…`."""

    app_key: rsa.RSAPublicKey | None = None
    next_answers: list[Callable[[], web.Response]] = field(default_factory=list)
    """Given before anything else."""

    statuses: list[dict[str, Any]] = field(default_factory=list)
    runs: dict[int, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["GitHubServer"]:
        app = web.Application(middlewares=[self._gate])
        repo = r"/repos/{owner}/{name}"
        app.router.add_get(f"{repo}/contents/{{path:.+}}", self._contents)
        app.router.add_get(f"{repo}/installation", self._installation)
        app.router.add_get(f"{repo}/commits/{{commit}}/check-runs", self._list_runs)
        app.router.add_get(f"{repo}/commits/{{ref:.+}}", self._commit)
        app.router.add_post(f"{repo}/statuses/{{commit}}", self._status)
        app.router.add_post(f"{repo}/check-runs", self._create_run)
        app.router.add_patch(f"{repo}/check-runs/{{id}}", self._update_run)
        app.router.add_post("/app/installations/{id}/access_tokens", self._access_token)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self
        finally:
            await runner.cleanup()

    @web.middleware
    async def _gate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.rel_url.path}")
        if self.next_answers:
            return self.next_answers.pop(0)()
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        by_app = request.path.startswith("/app/") or request.path.endswith("/installation")
        allowed = self._is_our_app(shown) if by_app else shown in (TOKEN, APP_TOKEN)
        if not allowed:
            return web.json_response({"message": "Bad credentials"}, status=401)
        if "check-runs" in request.path and shown != APP_TOKEN:
            said = {"message": "You must authenticate via a GitHub App."}
            return web.json_response(said, status=403)
        answer = await handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    def _is_our_app(self, jwt: str) -> bool:
        head, _, rest = jwt.partition(".")
        claims, _, signature = rest.partition(".")
        if self.app_key is None or not signature:
            return False
        text = f"{head}.{claims}".encode()
        with contextlib.suppress(InvalidSignature):
            self.app_key.verify(_decoded(signature), text, padding.PKCS1v15(), hashes.SHA256())
            said = json.loads(_decoded(claims))
            # GitHub refuses one that is good for more than ten minutes.
            return bool(said["exp"] - said["iat"] <= 600 and said["iss"] == "7")
        return False

    async def _contents(self, request: web.Request) -> web.Response:
        key = (_repository(request), request.query["ref"], request.match_info["path"])
        data = self.files.get(key)
        under = [path for where in self.files if where[:2] == key[:2] for path in where[2:]]
        inside = [each for each in under if each.rpartition("/")[0] == key[2]]
        if data is None and inside:
            names = [each.rpartition("/")[2] for each in inside]
            return web.json_response([{"type": "file", "name": each} for each in names])
        if data is None:
            return web.json_response({"message": "Not Found"}, status=404)
        return web.Response(body=data, content_type="application/vnd.github.raw+json")

    async def _commit(self, request: web.Request) -> web.Response:
        found = self.refs.get((_repository(request), request.match_info["ref"]))
        if found is None:
            return web.json_response({"message": "No commit found"}, status=422)
        return web.Response(text=found)

    async def _status(self, request: web.Request) -> web.Response:
        said = await request.json()
        assert len(said["description"]) <= 140
        assert said["state"] in ("pending", "success", "failure", "error")
        self.statuses.append({**said, "commit": request.match_info["commit"]})
        return web.json_response(said, status=201)

    async def _list_runs(self, request: web.Request) -> web.Response:
        commit, name = request.match_info["commit"], request.query["check_name"]
        found = [
            each
            for each in self.runs.values()
            if each["head_sha"] == commit and each["name"] == name
        ]
        return web.json_response({"total_count": len(found), "check_runs": found})

    async def _create_run(self, request: web.Request) -> web.Response:
        made = {**await request.json(), "id": len(self.runs) + 1}
        assert made["status"] in ("queued", "in_progress", "completed")
        self.runs[made["id"]] = made
        return web.json_response(made, status=201)

    async def _update_run(self, request: web.Request) -> web.Response:
        number = int(request.match_info["id"])
        self.runs[number] |= await request.json()
        return web.json_response(self.runs[number])

    async def _installation(self, _: web.Request) -> web.Response:
        return web.json_response({"id": 42})

    async def _access_token(self, _: web.Request) -> web.Response:
        return web.json_response(
            {"token": APP_TOKEN, "expires_at": "2030-01-01T01:00:00Z"}, status=201
        )


def _repository(request: web.Request) -> str:
    return f"{request.match_info['owner']}/{request.match_info['name']}"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
