"""The shop fails as often as it was told to, spread evenly, so that a story ends the same way."""

import asyncio

import pytest

from fairlead.cli.demo import shop
from fairlead.cli.demo.load import Load, Tally


async def asked(count: int, *words: str) -> Tally:
    server = await asyncio.start_server(shop.Shop(shop.parse([*words])).serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        return await Load(f"http://127.0.0.1:{port}/", customers=1).send(count)


@pytest.mark.parametrize(
    ("share", "failed"), [("0", 0), ("0.05", 2), ("0.25", 10), ("0.5", 20), ("1", 40)]
)
async def test_the_share_of_errors_is_exact(share: str, failed: int) -> None:
    tally = await asked(40, "--version", "v3", "--errors", share)

    assert (tally.answers["v3", 500], tally.sent, tally.lost) == (failed, 40, 0)


async def test_a_quarter_of_errors_shows_in_any_ten_answers() -> None:
    tallies = [await asked(count, "--errors", "0.25") for count in (4, 8, 10)]

    assert [tally.failed for tally in tallies] == [1, 2, 2]
