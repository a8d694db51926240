"""A workload as a file describes it, for the commands that take files."""

from pathlib import Path
from typing import Any

import msgspec

from fairlead.areas.rollouts import workloads
from fairlead.console.nouns import Declared, Manifest

_NO_CHECKS = (
    "no checks: a new version is rolled back only where it does not start;"
    " docs/reference/checks.md shows how to judge its requests"
)
STARTER = """\
# A workload for "fairlead deploy": docs/reference/rollouts.md has all fields.
name: shop
# project: payments  # whose it is: then it is called payments/shop
version: v1          # a name of your own; another one, or another program, starts a rollout
listen: 8080         # requests come here, and are split between the versions
replicas: 1

program:
  # Each process gets a port of its own in the variable PORT.
  command: [sh, -c, 'exec python3 -m http.server "$PORT" --bind 127.0.0.1']
  # cwd: .           # seen from this file
  # env: {COLOUR: blue}
  health: /          # ready once this path answers

strategy:
  steps: [10, 50]    # percent of the requests; then all of them
  pause: 30s         # at each step, beside what the checks take
  # approve: true    # a person approves before all traffic shifts

checks:
  - name: success
    metric: request-success-rate
    low: 99          # percent
    interval: 5s
  - name: latency
    metric: request-duration
    high: 500        # milliseconds, of the slowest hundredth
    interval: 5s
"""


def read(content: Any, folder: Path) -> Declared:
    """What the content asks for; Invalid with all that does not hold."""
    located = _located(content, folder)
    asked = workloads.read(located)
    spec, version = asked.want.spec, asked.want.version
    return Declared(
        name=asked.name,
        text=f"{asked.name} {version}, {spec.strategy.kind.value}, checks: {len(spec.checks)}",
        content=located,
        whole=msgspec.to_builtins(asked.words),
        warnings=() if spec.checks else (_NO_CHECKS,),
    )


def _located(content: Any, folder: Path) -> Any:
    """The same with the program's folder as a whole path, seen from where the file lies."""
    program = content.get("program") if isinstance(content, dict) else None
    if not isinstance(program, dict) or not isinstance(program.get("cwd", ""), str):
        # Its shape is refused where the words are read, with its path.
        return content
    cwd = str((folder / program.get("cwd", ".")).resolve())
    return {**content, "program": {**program, "cwd": cwd}}


WORKLOAD = Manifest(path="/workloads", read=read, starter=STARTER)
