"""A token in a check's address reaches whoever is called, and nobody who looks on."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.access import tokens
from fairlead.areas.rollouts.domain import coordination
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.checks.spec import Check, CheckKind
from tests.fakes import fleet
from tests.unit.web import rig

ADDRESS = "https://gate.example/open?release=7&token=hunter2&x=1"
GATE = Check("gate", ADDRESS, CheckKind.GATE)
SPEC = replace(fleet.SPEC, checks=(*fleet.SPEC.checks, GATE))
STREAM = f"/api/v1/streams/{coordination.rollout_stream('shop')}"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[rig.Site]:
    async with rig.site(tmp_path, fleet.Fleet().cast()) as running:
        yield running


@pytest.mark.parametrize(
    "path",
    [
        STREAM,
        f"{STREAM}/events",
        "/api/v1/feed",
        "/api/v1/effects",
        "/api/v1/projections/rollouts",
        "/api/v1/rollouts/shop",
        "/rollouts/shop",
        f"/streams/{coordination.rollout_stream('shop')}",
    ],
)
async def test_no_answer_tells_the_token_of_a_check(site: rig.Site, path: str) -> None:
    spec: Spec = SPEC
    await fleet.live(site.engine, "shop", spec)
    token = await site.token(tokens.Role.VIEWER)

    answer = await site.client.get(path, headers=rig.bearer(token))

    assert answer.status_code == 200, answer.text
    assert "hunter2" not in answer.text
