"""Our admission webhook alone: serves reviews of flotillas over TLS until a line comes in."""

import asyncio
import ssl
import sys
from datetime import UTC, datetime

from bench.contestants import fleet
from fairlead import errors
from fairlead.adapters.kubernetes import certificates, config
from fairlead.adapters.kubernetes.admission import Problem, Question, Verdict, Webhooks
from tests.operator import flotilla

PATH = "/validate/flotillas.tests.fairlead.dev"


def review(question: Question) -> Verdict:
    """As the door does it: the object is read into its types, and refused where that fails."""
    try:
        flotilla.observe(question.object or {}, ())
    except errors.Rejected as error:
        return Verdict((Problem("spec", error.message),))
    return Verdict()


async def run(task: fleet.Task) -> fleet.Figures:
    del task
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    pair = certificates.make(("127.0.0.1",), datetime.now(UTC))
    config.load_certificate(context, pair.certificate)
    async with Webhooks({PATH: review}).serving("127.0.0.1", 0, context) as port:
        print(port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    return {"memory_mb": fleet.memory("VmHWM")}


if __name__ == "__main__":
    fleet.serve(run)
