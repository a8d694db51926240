"""Verbs of stacks and deployments: in the caller's name, on what is there, where they fit."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead import bootstrap
from fairlead.access import tokens
from fairlead.areas.deployments.domain import messages
from fairlead.areas.deployments.domain.messages import Outcome
from fairlead.engine.messages import command_id, stream_name
from tests.engines import state
from tests.unit.areas.deployments.asked import WORDS
from tests.unit.areas.deployments.test_deployment_api import NAME, post
from tests.unit.areas.rollouts.test_workload_api import scoped
from tests.unit.web import rig

STACK = "prod-eu/shop"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    """With one deployment, on a stack that is being created."""
    async with rig.site(tmp_path, bootstrap.installation()) as made:
        assert (await post(made, WORDS)).status_code == 200
        yield made


async def ask(site: rig.Site, thing: str, headers: Any = None, **words: Any) -> httpx.Response:
    return await site.client.post(f"/api/v1/{thing}", json=words, headers=headers)


async def broken(site: rig.Site) -> None:
    end = messages.ReportEnd(NAME, Outcome.FAILED, "no")
    await site.engine.submit(stream_name("stack", STACK), end, command_id("end"))


async def test_a_deployment_is_ended_in_the_name_of_who_asks(site: rig.Site) -> None:
    operator = rig.bearer(await site.token(tokens.Role.OPERATOR))

    then = await ask(site, f"deployments/{NAME}/abort", operator, why="wrong version", id="a")
    again = await ask(site, f"deployments/{NAME}/abort", operator, why="wrong version", id="a")

    assert then.json()["receipt"]["events"] > 0, then.text
    assert again.json()["receipt"]["duplicate"] is True
    found = await state(site.engine, f"deployment/{NAME}")
    assert (found["status"], "wrong version" in found["reason"]) == ("TERMINATED", True)


@pytest.mark.requirement("deployer S-gap")
async def test_a_broken_stack_is_left_by_a_reason_or_a_retry(site: rig.Site) -> None:
    await broken(site)

    without = await ask(site, f"stacks/{STACK}/force-available")
    forced = await ask(site, f"stacks/{STACK}/force-available", why="mended by hand")
    late = await ask(site, f"stacks/{STACK}/retry")

    assert (without.status_code, "no reason" in without.text) == (400, True)
    assert forced.status_code == 200, forced.text
    assert (await state(site.engine, f"stack/{STACK}"))["status"] == "AVAILABLE"
    assert (late.status_code, "not broken" in late.text) == (409, True)


@pytest.mark.parametrize(
    ("thing", "status", "told"),
    [
        (f"deployments/{NAME}/abrot", 404, "did you mean abort?"),
        (f"stacks/{STACK}/approve", 404, "use one of: force-available, retry"),
        ("stacks/prod-eu/none/retry", 404, "no such stack: prod-eu/none"),
        ("deployments/none/approve", 404, "no such deployment: none"),
        (f"deployments/{NAME}/approve", 409, "nothing waits for approval"),
    ],
)
async def test_what_does_not_fit_changes_nothing(
    site: rig.Site, thing: str, status: int, told: str
) -> None:
    then = await ask(site, thing)

    assert then.status_code == status, then.text
    assert told in then.text
    streams = (await site.client.get("/api/v1/streams")).json()["items"]
    assert {each["name"] for each in streams} == {f"deployment/{NAME}", f"stack/{STACK}"}


async def test_a_viewer_and_a_scope_elsewhere_steer_nothing(site: rig.Site) -> None:
    viewer = rig.bearer(await site.token(tokens.Role.VIEWER))

    elsewhere = await scoped(site, "staging")

    refused = await ask(site, f"deployments/{NAME}/abort", viewer)
    unseen = await ask(site, f"deployments/{NAME}/abort", elsewhere)

    assert (refused.status_code, unseen.status_code) == (403, 404)
    assert (await state(site.engine, f"deployment/{NAME}"))["status"] != "TERMINATED"
