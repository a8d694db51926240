"""10,000 resources at rest for two hours: what they ask of an API, and what they weigh.

The worker is a process of its own; its clock is wound, so that two hours take minutes: timers,
their jitter and the budget are those of production. The API answers over HTTP and counts. Beside
it stands what an operator would ask that puts each resource once an hour: one write each.
"""

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator

from aiohttp import web

from bench import harness
from bench.contestants.resources_ours import Rest

RESOURCES = 10_000
READS_PER_HOUR, WRITES_PER_HOUR = 12_000, 1_200
_BURST = 1 + 1 / 12
_MOST_MB = 300.0


def run(effort: harness.Effort) -> harness.Result:
    result = harness.Result("resources", {"load_average_before": harness.load_average()})
    count = effort.pick(RESOURCES, 200)
    with _api() as (url, asked):
        told = harness.contest("resources_ours", Rest(url, count, READS_PER_HOUR, WRITES_PER_HOUR))
    for name, value in told.items():
        result.measurements[name] = value
    result.measurements["resources"] = count
    result.measurements["api_reads"] = asked["GET"]
    result.measurements["api_writes"] = writes = sum(asked.values()) - asked["GET"]
    # Each resource put once an hour, as a plain operator does; ours is for the second hour.
    result.measurements["put_each_hour_writes"] = count
    result.measurements["put_each_hour_of_the_limit"] = count / WRITES_PER_HOUR
    if writes:
        result.broken.append(f"{writes} writes to resources that are as declared")
    if told["ready"] != count:
        result.broken.append(f"ready: {told['ready']:.0f} of {count}")
    if told["most_reads_of_an_hour"] > READS_PER_HOUR * _BURST:
        result.broken.append(f"more reads than the budget has: {told['most_reads_of_an_hour']:.0f}")
    if told["memory_mb"] > _MOST_MB:
        result.broken.append(f"memory: {told['memory_mb']:.0f} MB, limit {_MOST_MB:.0f} MB")
    result.measurements["load_average_after"] = harness.load_average()
    return result


@contextlib.contextmanager
def _api() -> Iterator[tuple[str, Counter[str]]]:
    """Every resource is there, as it is declared; the URL, and how often each method was asked."""
    asked: Counter[str] = Counter()
    loop, ready, end = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    urls: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked[request.method] += 1
        name = request.path.rpartition("/")[2]
        body = {"id": request.path, "name": name, "tags": {"tag1": "value"}}
        body["properties"] = {"provisioningState": "Succeeded", "notes": "x" * 2_000}
        return web.Response(text=json.dumps(body), content_type="application/json")

    async def serve() -> None:
        app = web.Application()
        app.router.add_route("*", "/{tail:.*}", answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0]
        urls.append(f"http://{host}:{port}")
        ready.set()
        await end.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    if not ready.wait(30):
        raise harness.Failed("the API of the benchmark did not start")
    try:
        yield urls[0], asked
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(30)
        loop.close()


BENCHMARK = harness.Benchmark(
    "resources", "10,000 resources at rest: reads, writes and the worker's memory", run
)
