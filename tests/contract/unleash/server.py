"""A real Unleash, which is not in CI.

FAIRLEAD_TEST_UNLEASH names a folder in which `npm install node@22 --prefix node22` and
`npm install unleash-server@8.2.0` were run.
"""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

FOLDER = os.environ.get("FAIRLEAD_TEST_UNLEASH", "")
NEEDED = pytest.mark.skipif(not FOLDER, reason="needs FAIRLEAD_TEST_UNLEASH, a folder with Unleash")
CLIENT = "default:development.client-of-a-test"
ADMIN = "*:*.admin-of-a-test"


@dataclass(frozen=True, slots=True)
class Unleash:
    """A running server, and its admin API."""

    url: str
    admin: httpx.Client

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        answer = self.admin.request(method, f"/api/admin/projects/default{path}", json=content)
        return answer.raise_for_status().json() if answer.content else None


@contextlib.contextmanager
def running(postgres_url: str, folder: Path) -> Iterator[Unleash]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    node = Path(FOLDER, "node22/node_modules/node/bin/node")
    script = Path(FOLDER, "node_modules/unleash-server/dist/server.js")
    given = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": postgres_url,
        "DATABASE_SSL": "false",
        "HTTP_HOST": "127.0.0.1",
        "HTTP_PORT": str(port),
        "CHECK_VERSION": "false",
        "SEND_TELEMETRY": "false",
        "NODE_ENV": "production",
        "TZ": "UTC",
        "INIT_ADMIN_API_TOKENS": ADMIN,
        "INIT_BACKEND_API_TOKENS": CLIENT,
        "INIT_CLIENT_API_TOKENS": CLIENT,
    }
    with (folder / "unleash.log").open("wb") as log:
        process = subprocess.Popen([node, script], env=given, stdout=log, stderr=log, cwd=FOLDER)
    url = f"http://127.0.0.1:{port}"
    transport = httpx.HTTPTransport(retries=40)
    with httpx.Client(
        base_url=url, headers={"Authorization": ADMIN}, transport=transport, timeout=60
    ) as admin:
        try:
            admin.get("/health").raise_for_status()
            yield Unleash(f"{url}/api", admin)
        finally:
            process.terminate()
            process.wait(30)


def make_flag(there: Unleash, name: str, rollout: str = "0") -> None:
    """A flag of gradual rollout, turned on in `development`."""
    there.ask("POST", "/features", {"name": name, "type": "release"})
    parameters = {"rollout": rollout, "stickiness": "userId", "groupId": name}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": []}
    at = f"/features/{name}/environments/development"
    there.ask("POST", f"{at}/strategies", strategy)
    there.ask("POST", f"{at}/on")
