"""How figures are taken: contestants in turn, several rounds, median and spread.

Machines are noisy, and the noise drifts. So contestants take turns (A B C A B C …), a ratio
is taken between neighbours of the same round, and the table shows the middle and the edges.
"""

import importlib.util
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fairlead.clients.postgres.server import launch

ROOT = Path(__file__).resolve().parent.parent
LONGEST_SECONDS = 600

Rates = dict[str, float]
Contestant = Callable[[], Mapping[str, float]]


class Failed(Exception):
    """A contestant did not finish; the others go on without it."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on a figure."""

    quick: bool = False

    @property
    def rounds(self) -> int:
        return 1 if self.quick else 5

    def pick(self, full: int, quick: int) -> int:
        return quick if self.quick else full


@dataclass(slots=True)
class Result:
    """What a benchmark found; a ratio above 1 means that ours is faster."""

    name: str
    measurements: dict[str, float | str] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    """What must hold on every machine and did not: the run ends with an error."""

    def add(self, name: str, values: list[float]) -> None:
        """A figure: the middle of its rounds, with the edges as its spread."""
        if values:
            self.measurements[name] = _short(statistics.median(values))
            self.spread[name] = (_short(min(values)), _short(max(values)))

    def compare(self, name: str, ours: list[float], theirs: list[float]) -> None:
        """A ratio, round by round."""
        pairs = [mine / other for mine, other in zip(ours, theirs, strict=False) if other]
        if pairs:
            self.ratios[name] = _short(statistics.median(pairs))
            self.spread[name] = (_short(min(pairs)), _short(max(pairs)))


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One module's promise: a name, a line about it, and how to run it."""

    name: str
    about: str
    run: Callable[[Effort], Result]


class Rounds:
    """The figures of every contestant, round by round."""

    def __init__(self, contestants: Mapping[str, Contestant | None], count: int) -> None:
        self._found: dict[str, list[Mapping[str, float]]] = {name: [] for name in contestants}
        standing = {name: one for name, one in contestants.items() if one is not None}
        for number in range(1, count + 1):
            for name in list(standing):
                try:
                    measurements = standing[name]()
                except Failed as failure:
                    say(f"{name} is left out: {failure}")
                    del standing[name]
                    continue
                self._found[name].append(measurements)
                say(f"round {number} of {count}: {name}: {_told(measurements)}")

    def of(self, name: str, measurement: str = "per_second") -> list[float]:
        return [
            measurements[measurement]
            for measurements in self._found.get(name, ())
            if measurement in measurements
        ]


def peer(package: str, contestant: Contestant) -> Contestant | None:
    """The contestant, or None where its package is not installed."""
    if importlib.util.find_spec(package) is None:
        say(f"{package} is not installed, so its ratios are left out; run make setup-bench")
        return None
    return contestant


def contest(module: str, job: msgspec.Struct) -> Rates:
    """Run one contestant in a process of its own."""
    return measurements_of(start_contest(module, job), module)


def start_contest(module: str, job: msgspec.Struct) -> "subprocess.Popen[str]":
    program = [sys.executable, "-m", f"bench.contestants.{module}"]
    # A benchmark that is cut off must not leave its contestants running.
    desired = [os.getpid(), int(signal.SIGKILL), launch.KEEP_ID, launch.KEEP_ID]
    command = [sys.executable, "-I", "-S", launch.__file__, *map(str, desired)]
    command += [*program, msgspec.json.encode(job).decode()]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def measurements_of(process: "subprocess.Popen[str]", name: str) -> Rates:
    """What a contestant printed last, once it has ended well."""
    try:
        out, error = process.communicate(timeout=LONGEST_SECONDS)
    except subprocess.TimeoutExpired as late:
        process.kill()
        process.communicate()
        raise Failed(f"{name} took more than {LONGEST_SECONDS} s") from late
    if process.returncode != 0:
        raise Failed(f"{name} ended with code {process.returncode}: {error.strip()[-500:]}")
    return msgspec.json.decode(out.strip().rpartition("\n")[2], type=Rates)


def load_average() -> float:
    return round(os.getloadavg()[0], 2)


def say(text: str) -> None:
    """Talk goes to standard error; standard output is data."""
    print(f"bench: {text}", file=sys.stderr, flush=True)


def _short(value: float) -> float:
    """As many digits as a noisy figure deserves."""
    return float(f"{value:.4g}")


def _told(measurements: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in measurements.items())
