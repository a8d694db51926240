"""The door of commands on a running control plane: no role starts a rollout under a path."""

import itertools
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.local.shop_versions import free_port
from tests.e2e import local

pytestmark = pytest.mark.xdist_group("envoy")
REQUEST: dict[str, Any] = {
    "spec": {"strategy": {}},
    "version": {"revision": "v1", "template": "t1"},
}
NAMES = [("x", "../../../evil"), ("x%2F..%2F..%2F..%2Fevil", "x/../../../evil"), ("x", "x")]


async def test_a_raw_request_under_a_path_makes_no_file_and_stops_no_start(tmp_path: Path) -> None:
    site = local.Site(tmp_path / "state", free_port(), free_port())
    shown = [await _token(site, role) for role in ("operator", "admin")]
    url = f"http://127.0.0.1:{site.page}/api/v1/streams/rollout"
    with site.up() as first:
        queue = f"local@{json.loads(_text(tmp_path / 'state' / 'local' / 'id'))}"
        for headers, (key, name) in itertools.product(shown, NAMES):
            body = {"type": "Request", "data": {**REQUEST, "name": name}, "queue": queue}
            async with httpx.AsyncClient(headers=headers, timeout=30) as client:
                answer = await client.post(f"{url}/{key}/commands", json=body)

            assert answer.status_code == 403, answer.text
            assert "Pause" in answer.json()["error"]["hint"]
        assert first.stop(signal.SIGTERM) == 0

    assert _names(tmp_path) == ["state"]
    with site.up() as second:
        assert second.stop(signal.SIGTERM) == 0


async def _token(site: local.Site, role: str) -> dict[str, str]:
    made = await site.type("token", "create", "--name", "mallory", "--role", role)
    return {"Authorization": f"Bearer {made.stdout.strip()}"}


def _text(file: Path) -> str:
    return file.read_text()


def _names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]
