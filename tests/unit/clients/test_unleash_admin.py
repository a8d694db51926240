"""Unleash's admin API: what passes is asked again, what would surprise somebody is refused."""

import pytest

from fairlead import errors
from fairlead.areas.content.domain.release.place import Flag
from fairlead.clients import unleash_admin
from fairlead.clients.unleash_admin import Admin
from tests.fakes.unleash import TOKEN, FakeUnleash, gradual

FLAG = Flag("gathering", environment="development")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unleash_admin, "_PAUSE_SECONDS", 0.0)


async def test_an_outage_that_passes_is_not_noticed() -> None:
    async with FakeUnleash(failing=2).running() as there:
        await Admin(there.url, TOKEN).set_rollout(FLAG, 42)

    assert there.rollout == "42"


async def test_an_outage_that_lasts_is_told_without_the_token() -> None:
    async with FakeUnleash(failing=9).running() as there:
        with pytest.raises(errors.Unavailable, match="Unleash answers 503") as refused:
            await Admin(there.url, TOKEN).set_rollout(FLAG, 42)
    with pytest.raises(errors.Unavailable, match="does not answer: ClientConnector"):
        await Admin(there.url, TOKEN).set_rollout(FLAG, 42)

    assert TOKEN not in f"{refused.value!r} {Admin(there.url, TOKEN)!r}"


@pytest.mark.parametrize(
    ("there", "told"),
    [
        (FakeUnleash([gradual(), gradual(id_="two")]), "has 2 strategies"),
        (FakeUnleash([{"id": "one", "name": "default"}]), "has 1 strategies"),
        (FakeUnleash(enabled=False), "is off in development"),
        (FakeUnleash([gradual(stickiness="random")]), "sticks to random"),
        (FakeUnleash([gradual(stickiness="sessionId")]), "sticks to sessionId"),
        (FakeUnleash([gradual(groupId="other")]), "has the group other"),
        (FakeUnleash([{**gradual(), "constraints": [{}]}]), "has constraints or segments"),
        (FakeUnleash([{**gradual(), "segments": [1]}]), "has constraints or segments"),
    ],
)
async def test_a_flag_that_would_let_in_others_or_nobody_is_refused(
    there: FakeUnleash, told: str
) -> None:
    async with there.running():
        with pytest.raises(errors.Conflict, match=told):
            await Admin(there.url, TOKEN).set_rollout(FLAG, 10)


async def test_whatever_narrows_a_flag_it_can_be_emptied() -> None:
    narrow = {**gradual("50", stickiness="random", groupId="other"), "segments": [1]}
    async with FakeUnleash([narrow]).running() as there:
        await Admin(there.url, TOKEN).set_rollout(FLAG, 0)

    assert there.rollout == "0"


async def test_a_strategy_as_unleash_makes_it_is_taken() -> None:
    usual = gradual(stickiness="default", groupId="gathering")
    whole = {**usual, "constraints": [], "segments": [], "variants": []}
    async with FakeUnleash([whole]).running() as there:
        await Admin(there.url, TOKEN).set_rollout(FLAG, 10)

    assert there.rollout == "10"


async def test_a_flag_that_is_off_has_nobody_inside() -> None:
    async with FakeUnleash([gradual("50")], enabled=False).running() as there:
        await Admin(there.url, TOKEN).set_rollout(FLAG, 0)

    assert there.rollout == "0"
