"""The whole program, a real git server, a signed webhook over a socket: files become a trigger."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import contents
from tests.contract.local.shop_versions import free_port
from tests.e2e import local
from tests.unit.areas.deployments.specs import files
from tests.unit.areas.deployments.triggers import payloads
from tests.unit.areas.deployments.triggers.world import SHOP, TARGET

pytestmark = pytest.mark.xdist_group("envoy")
STORED: tuple[dict[str, Any], ...] = (
    {"kind": "cluster", **files.CLUSTER},
    {"kind": "environment", "full_name": "prod", "cluster_name": "east"},
    {"kind": "push-target", **TARGET, "provider": "gitea"},
)


async def requested(site: local.Site, name: str) -> dict[str, Any]:
    """The trigger's only target, once its deployment was requested."""
    async with asyncio.timeout(120):
        while True:
            shown = await site.type("get", "trigger", name, "-o", "json")
            assert shown.returncode == 0, shown.stderr
            run: dict[str, Any] = json.loads(shown.stdout)["data"]["runs"][0]
            assert run["progress"] != "REFUSED", run
            if run["deployment"]:
                return run
            await asyncio.sleep(0.2)


@pytest.mark.requirement("deployer G1", "deployer M1")
async def test_a_push_is_kept_before_it_is_answered_and_goes_on_after_a_kill(
    tmp_path: Path,
) -> None:
    (tmp_path / "git" / "acme").mkdir(parents=True)
    (tmp_path / "secret").write_text(payloads.SECRET)
    work = contents.repository(tmp_path / "git" / "acme" / "work")
    commit = contents.tag(work, "v1", {"deploy/shop.yaml": SHOP})
    contents.git(tmp_path / "git", "clone", "-q", "--bare", str(work), "acme/shop.git")
    site = local.Site(tmp_path / "state", free_port(), free_port())
    with contents.serving_git(tmp_path / "git") as address:
        more = {
            "FAIRLEAD_DEPLOYMENTS_GITEA_URL": address.removesuffix("/.git"),
            "FAIRLEAD_DEPLOYMENTS_GITEA_SECRET_FILE": str(tmp_path / "secret"),
            # Nobody answers there: that it is requested is enough here.
            "FAIRLEAD_AWS_BUCKET": "templates",
            "FAIRLEAD_AWS_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        }
        with site.up(more) as first:
            for content in STORED:
                told = await site.type("deploy", "-", given=json.dumps(content))
                assert told.returncode == 0, told.stderr
            async with httpx.AsyncClient(timeout=60) as client:
                hook = f"http://127.0.0.1:{site.page}/hooks/gitea"
                sent = await client.post(hook, **payloads.gitea(payloads.push(commit)))
            first.stop(signal.SIGKILL)
        assert sent.status_code == 202, sent.text
        with site.up(more) as second:
            pushed = await requested(site, sent.json()["trigger"])
            started = await site.type("deployments", "start", "prod/shop", "--tag", "v1")
            by_hand = await requested(site, started.stdout.strip())
            listed = await site.type("get", "triggers")
            assert second.stop(signal.SIGTERM) == 0

    assert pushed["deployment"].startswith(f"prod/shop/{commit[:12]}-")
    assert by_hand["deployment"].startswith(f"prod/shop/{commit[:12]}-")
    assert pushed["deployment"] != by_hand["deployment"]
    assert "push to main of acme/shop" in listed.stdout
    assert payloads.SECRET not in "".join([*first.said, *second.said])
