"""Bad weather for a controller on the fake API server, from one seed."""

import contextlib
import random
from collections.abc import Awaitable, Callable

from fairlead.errors import FairleadError
from tests.fakes.kubernetes.hand_clock import settle
from tests.fakes.kubernetes.server import Fault, Server

CODES = (409, 429, 500, 502, 503, 504)
Meddle = Callable[[random.Random], Awaitable[object]]
"""One change by a hand, which may fail as any other request."""

WORST = 8


class Storm:
    """Random faults and random hands; half of all gusts are hands."""

    def __init__(self, server: Server, meddle: Meddle, seed: int) -> None:
        self.server = server
        self.dice = random.Random(seed)
        self._meddle = meddle

    async def blow(self, longest_lull: int = 1) -> None:
        """One gust; those with a short lull come together, others after the dust has settled."""
        match self.dice.randrange(WORST):
            case 0:
                self.server.cut_watches()
            case 1:
                self.server.store.compact()
                self.server.cut_watches()
            case 2:
                code = self.dice.choice(CODES)
                headers = {"Retry-After": "0"} if code == 429 else {}
                reason = "Conflict" if code == 409 else "Injected"
                times = self.dice.randrange(1, 6)
                self.server.faults.append(Fault(code, times, headers, reason))
            case 3:
                self.server.expire_pages()
            case _:
                with contextlib.suppress(FairleadError):
                    await self._meddle(self.dice)
        for _ in range(self.dice.randrange(longest_lull) + 1):
            await settle()
