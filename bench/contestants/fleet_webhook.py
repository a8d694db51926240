"""Our admission webhook alone: serves reviews of bundles over TLS until a line comes in."""

import asyncio
import ssl
import sys
from datetime import UTC, datetime

from bench.contestants import fleet
from fairlead.kubernetes.client import config
from fairlead.kubernetes.webhook import certificates, webhook
from fairlead.kubernetes.webhook.admission import Webhooks
from tests.operator import sample_kind

(PATH,) = webhook.paths_of(sample_kind.KIND)


async def run(task: fleet.Task) -> fleet.Measurements:
    del task
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = certificates.make(("127.0.0.1",), datetime.now(UTC))
    config.load_certificate(context, pair.certificate)
    async with Webhooks({PATH: webhook.reviewer(sample_kind.KIND)}).serving(
        "127.0.0.1", 0, context
    ) as port:
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    return {"memory_mb": fleet.memory("VmHWM")}


if __name__ == "__main__":
    fleet.serve(run)
