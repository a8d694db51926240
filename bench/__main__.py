"""`python -m bench list`, `python -m bench run NAME… [--json] [--quick]`, `python -m bench build`.

A new benchmark is a module with a BENCHMARK, added to the list below.
"""

import argparse
import difflib
import json
import logging
import sys
from collections.abc import Sequence

import msgspec
import structlog

from bench import (
    content,
    deployments,
    ended,
    engine,
    judge,
    kubernetes,
    lone,
    migrations,
    peers_build,
    resources,
    rollouts,
    scale,
    start,
    table,
    waiting,
)
from bench.harness import Benchmark, Effort, Result, say
from fairlead import errors

BENCHMARKS: tuple[Benchmark, ...] = (
    engine.BENCHMARK,
    lone.BENCHMARK,
    scale.BENCHMARK,
    waiting.BENCHMARK,
    ended.BENCHMARK,
    start.BENCHMARK,
    judge.BENCHMARK,
    migrations.BENCHMARK,
    deployments.BENCHMARK,
    kubernetes.BENCHMARK,
    rollouts.BENCHMARK,
    content.BENCHMARK,
    resources.BENCHMARK,
)


def main(arguments: Sequence[str], benchmarks: Sequence[Benchmark] = BENCHMARKS) -> int:
    options = _parser().parse_args(arguments)
    if options.action == "list":
        for each in benchmarks:
            print(f"{each.name:10} {each.about}")
        return 0
    if options.action == "build":
        return _build(options.jobs)
    known = {each.name: each for each in benchmarks}
    unknown = [name for name in options.names if name not in known]
    if unknown:
        return _refuse(unknown[0], list(known))
    chosen = [known[name] for name in options.names] or list(benchmarks)
    results = [_run(each, options) for each in chosen]
    if not options.json:
        print(table.drawn(results))
    broken = [f"{each.name}: {said}" for each in results for said in each.broken]
    for said in broken:
        print(f"error: a promise is broken: {said}", file=sys.stderr)
    return 1 if broken else 0


def _run(benchmark: Benchmark, options: argparse.Namespace) -> Result:
    say(f"{benchmark.name}: {benchmark.about}")
    result = benchmark.run(Effort(quick=options.quick))
    if options.json:
        shown = msgspec.to_builtins(result)
        # Not a figure: it is told by the exit code.
        del shown["broken"]
        print(json.dumps(shown), flush=True)
    return result


def _build(jobs: int | None) -> int:
    """The folder of the peers on standard output."""
    try:
        print(peers_build.build(jobs))
    except errors.FairleadError as failure:
        print(f"error: {failure.message}\nhint: {failure.hint}", file=sys.stderr)
        return failure.exit_code
    return 0


def _refuse(name: str, known: list[str]) -> int:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"use one of: {', '.join(known)}"
    print(f"error: no such benchmark: {name}\nhint: {hint}", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="which benchmarks there are")
    run = actions.add_parser("run", help="take figures; all benchmarks where none is named")
    run.add_argument("names", nargs="*", metavar="NAME")
    run.add_argument("--json", action="store_true", help="one object a benchmark, nothing else")
    run.add_argument("--quick", action="store_true", help="a small load, once: to try it out")
    build = actions.add_parser("build", help="build peers that are programs of their own, once")
    build.add_argument("--jobs", type=int, help="compile at most this many packages at once")
    return parser


if __name__ == "__main__":
    # What our own clients log while they prepare is neither data nor news.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    sys.exit(main(sys.argv[1:]))
