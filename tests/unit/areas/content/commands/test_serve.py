"""`fairlead content serve`: it does not serve on unseen when nobody follows the share."""

import asyncio

import pytest

from fairlead import errors
from fairlead.areas.content.commands import serve
from fairlead.areas.content.service.catalogue import Catalogue, Identity
from fairlead.areas.content.service.own_share import OwnShare
from fairlead.areas.content.settings import ContentSettings


class Broken(OwnShare):
    """A population whose follower ends by a fault of ours."""

    async def keep(self) -> None:
        raise KeyError("name")


async def test_a_fault_of_who_follows_the_share_ends_the_service_with_its_name() -> None:
    served = Catalogue("gathering", {}, {}, (), Identity("X-Entity-Id", lambda _: ""))
    chosen = ContentSettings(content_listen="127.0.0.1:0", content_drain_seconds=0)

    async with asyncio.timeout(60):
        with pytest.raises(errors.Unavailable, match="follows the share: KeyError: 'name'"):
            await serve.answer(served, Broken(None, "none"), chosen)
