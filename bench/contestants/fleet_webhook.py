"""Our admission webhook alone: serves reviews of flotillas over TLS until a line comes in."""

import asyncio
import ssl
import sys
from datetime import UTC, datetime

from bench.contestants import fleet
from fairlead.adapters.kubernetes import certificates, config, reviewing
from fairlead.adapters.kubernetes.admission import Webhooks
from tests.operator import flotilla

PATH = reviewing.path_of(flotilla.KIND)


async def run(task: fleet.Task) -> fleet.Figures:
    del task
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = certificates.make(("127.0.0.1",), datetime.now(UTC))
    config.load_certificate(context, pair.certificate)
    async with Webhooks({PATH: reviewing.reviewer(flotilla.KIND)}).serving(
        "127.0.0.1", 0, context
    ) as port:
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    return {"memory_mb": fleet.memory("VmHWM")}


if __name__ == "__main__":
    fleet.serve(run)
