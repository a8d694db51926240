"""How long the admission webhook takes for a 10 KB object, one request after another over TLS."""

import http.client
import json
import ssl
import time
import uuid

from bench import api_server, harness
from bench.contestants import fleet, fleet_webhook
from bench.contestants.job import percentile
from tests.operator.sample_kind import bundle

_WARM = 50
_BYTES = 10_000


def run(count: int) -> harness.Rates:
    task = fleet.Task("", "", "", api_server.NAMESPACE, 0)
    worker = harness.start_contest("fleet_webhook", task)
    api_server.begin(worker, "fleet_webhook")
    assert worker.stdout is not None
    port = int(worker.stdout.readline())
    took = _ask(port, count + _WARM)[_WARM:]
    # The line that `measurements_of` ends the input with stops the server.
    memory = harness.measurements_of(worker, "fleet_webhook")["memory_mb"]
    return {
        "p50_ms": percentile(took, 0.5) * 1000,
        "p99_ms": percentile(took, 0.99) * 1000,
        "memory_mb": memory,
    }


def _ask(port: int, count: int) -> list[float]:
    # Whom we trust is not what is measured here.
    trust = ssl._create_unverified_context()  # noqa: S323, SLF001 - our own server on loopback
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=30)
    body = _question()
    took: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        connection.request("POST", fleet_webhook.PATH, body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        took.append(time.perf_counter() - began)
        if answer["response"]["allowed"] is not True:
            raise harness.Failed(f"the webhook refused a good object: {answer}")
    connection.close()
    return took


def _question() -> bytes:
    obj = bundle(api_server.NAMESPACE, "large", gadgets=3)
    obj["metadata"]["uid"] = str(uuid.UUID(int=1))
    obj["metadata"]["annotations"] = {f"note-{n}": "x" * 100 for n in range(_BYTES // 115)}
    request = {
        "uid": str(uuid.UUID(int=2)),
        "operation": "CREATE",
        "name": "large",
        "namespace": api_server.NAMESPACE,
        "object": obj,
        "userInfo": {"username": "bench"},
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(review).encode()
