"""Who gets the canary: places, shares, and agreement with Unleash's own client."""

import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies
from UnleashClient.cache import FileCache
from UnleashClient.clients.unleash_client import UnleashClient

from fairlead import errors
from fairlead.areas.content.domain import population
from fairlead.areas.content.domain.population import Channel, Population, Share

IDS = [str(uuid.UUID(int=Random(7).getrandbits(128) ^ number)) for number in range(10_000)]
TOGGLE = "insights-operator-gathering-conditions-service"
SHARES = strategies.integers(0, population.EVERYBODY).map(Share)


@pytest.mark.parametrize(
    ("group", "identity", "bucket"), [("gr1", "123", 73), ("groupX", "999", 25)]
)
def test_known_ids_have_their_published_buckets(group: str, identity: str, bucket: int) -> None:
    assert population.bucket(group, identity) == bucket


def flags(percent: int) -> dict[str, object]:
    parameters = {"rollout": str(percent), "stickiness": "userId", "groupId": TOGGLE}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "constraints": []}
    return {
        "version": 2,
        "features": [{"name": TOGGLE, "enabled": True, "strategies": [strategy], "variants": []}],
    }


@pytest.fixture(params=[1, 10, 30, 60, 99])
def unleash(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, UnleashClient]]:
    """Unleash's own client, offline, with a flag of that percentage."""
    cache = FileCache("agreement", str(tmp_path))
    cache.bootstrap_from_dict(flags(request.param))
    client = UnleashClient(
        "http://127.0.0.1:9/api",
        "test",
        cache=cache,
        disable_metrics=True,
        disable_registration=True,
    )
    client.initialize_client(fetch_toggles=False)
    yield request.param, client
    client.destroy()


def test_ten_thousand_ids_agree_with_unleash(unleash: tuple[int, UnleashClient]) -> None:
    percent, client = unleash

    theirs = {each for each in IDS if client.is_enabled(TOGGLE, {"userId": each})}

    ours = {
        each
        for each in IDS
        if population.enabled(population.bucket(TOGGLE, each), Decimal(percent))
    }
    assert ours == theirs
    assert abs(len(ours) - percent * 100) < 200


@given(strategies.text(min_size=1), SHARES, SHARES, strategies.text())
@pytest.mark.requirement("content 18")
def test_a_higher_share_removes_no_one(identity: str, one: Share, other: Share, salt: str) -> None:
    lower, higher = sorted((one, other))

    before = Population(salt, lower).channel(identity)
    after = Population(salt, higher).channel(identity)

    assert (before, after) != (Channel.CANARY, Channel.STABLE)


@given(strategies.text(), SHARES)
@pytest.mark.requirement("content 19")
def test_without_an_identity_everybody_is_on_stable(salt: str, share: Share) -> None:
    assert Population(salt, share).channel("") is Channel.STABLE


@pytest.mark.parametrize("identity", ["a", "\N{GREEK SMALL LETTER ALPHA}", "\udcff", "\0"])
def test_a_share_of_all_holds_every_identity_and_one_of_none_holds_nobody(identity: str) -> None:
    assert Population("1.0.2", population.EVERYBODY).channel(identity) is Channel.CANARY
    assert Population("1.0.2", population.NOBODY).channel(identity) is Channel.STABLE


@pytest.mark.parametrize(("share", "least", "most"), [("0.5", 30, 70), ("10", 920, 1080)])
def test_about_the_share_is_inside(share: str, least: int, most: int) -> None:
    chosen = Population("1.0.2", population.parse_share(share))

    inside = sum(chosen.channel(each) is Channel.CANARY for each in IDS)

    assert least < inside < most


def test_another_salt_puts_others_first() -> None:
    share = population.parse_share("10")
    first, second = (
        {each for each in IDS if Population(salt, share).channel(each) is Channel.CANARY}
        for salt in ("1.0.2", "1.0.3")
    )

    assert len(first & second) < len(first) / 5


@pytest.mark.parametrize(
    ("text", "share"), [("0", 0), ("0.01", 1), ("12.5", 1250), ("100", 10_000), ("1e1", 1000)]
)
def test_a_share_is_a_percentage_of_two_decimals(text: str, share: int) -> None:
    assert population.parse_share(text) == share


@pytest.mark.parametrize("text", ["", "-1", "100.01", "0.001", "nan", "inf", "-inf", "ten", "5%"])
def test_what_is_no_such_percentage_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a share"):
        population.parse_share(text)


@given(SHARES)
def test_a_share_is_shown_as_it_is_read(share: Share) -> None:
    assert population.parse_share(population.shown_share(share)) == share
