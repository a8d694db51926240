"""An outside world that remembers what was asked of it, and may be slow or broken."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from fairlead.engine import outbox
from tests import machines


class OutsideWorld:
    """Carries pieces; a closed gate keeps them on the way."""

    def __init__(self, faults: Sequence[Exception] = ()) -> None:
        self.faults = list(faults)
        self.asked: list[str] = []
        self.contexts: list[outbox.EffectContext] = []
        self.under_way: Counter[str] = Counter()
        self.most = 0
        self.most_of_one = 0
        self.cancelled: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrival = asyncio.Event()

    async def carry(self, effect: machines.Carry, context: outbox.EffectContext) -> object:
        key = context.idempotency_key
        self.asked.append(effect.piece)
        self.contexts.append(context)
        self.under_way[key] += 1
        self.most = max(self.most, self.under_way.total())
        self.most_of_one = max(self.most_of_one, self.under_way[key])
        self.arrival.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(effect.piece)
            raise
        finally:
            self.under_way[key] -= 1
        if self.faults:
            raise self.faults.pop(0)
        return machines.Unload(effect.piece)
