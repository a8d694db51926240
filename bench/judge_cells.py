"""What the judge is shown in its benchmark: two sides, alike or one of them worse."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from fairlead.analysis.samples import Counted

Side = list[float] | Counted
Drawn = tuple[Side, Side]
Draw = Callable[[random.Random, int], Drawn]


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the table: its name, how both sides are drawn, and the experiment's traffic."""

    name: str
    draw: Draw
    share: float | None = 0.5
    alike: bool = True
    promised: bool = True
    """Whether its alarms are held against the promise; some data goes beyond it."""


def poisson(chance: random.Random, mean: float) -> int:
    """Knuth's way: fine for the small means that are drawn here."""
    limit, count, product = math.exp(-mean), 0, chance.random()
    while product > limit:
        count += 1
        product *= chance.random()
    return count


def normal(shift: float = 0.0, times: float = 1.0) -> Draw:
    def draw(chance: random.Random, count: int) -> Drawn:
        control: Side = [100 + 10 * chance.gauss(0, 1) for _ in range(count)]
        return control, [100 + 10 * (times * chance.gauss(0, 1) + shift) for _ in range(count)]

    return draw


def lognormal(sigma: float, factor: float = 1.0) -> Draw:
    def draw(chance: random.Random, count: int) -> Drawn:
        control: Side = [chance.lognormvariate(0, sigma) for _ in range(count)]
        return control, [factor * chance.lognormvariate(0, sigma) for _ in range(count)]

    return draw


def following(correlation: float, spread: float = 0.0) -> Draw:
    """Each side for itself an autoregression of one step; with a spread, its exponential."""

    def side(chance: random.Random, count: int) -> list[float]:
        walk = _walk(chance, correlation, count)
        return [math.exp(spread * each) for each in walk] if spread else walk

    def draw(chance: random.Random, count: int) -> Drawn:
        return side(chance, count), side(chance, count)

    return draw


def shared(shift: float = 0.0) -> Draw:
    """Both sides see the same load, which follows itself, and each has a little noise."""

    def draw(chance: random.Random, count: int) -> Drawn:
        load = _walk(chance, 0.7, count)
        control: Side = [each + 0.3 * chance.gauss(0, 1) for each in load]
        return control, [each + 0.3 * chance.gauss(0, 1) + shift for each in load]

    return draw


def sparse(mean: float, factor: float = 1.0) -> Draw:
    """Events a minute, without requests."""

    def draw(chance: random.Random, count: int) -> Drawn:
        control: Side = [float(poisson(chance, mean)) for _ in range(count)]
        return control, [float(poisson(chance, mean * factor)) for _ in range(count)]

    return draw


def errors(requests: int, others: int, factor: float = 1.0, *, rate: float = 0.005) -> Draw:
    """Errors of so many requests a sample on each side, counted."""

    def draw(chance: random.Random, count: int) -> Drawn:
        control = tuple(poisson(chance, others * rate) for _ in range(count))
        worse = tuple(poisson(chance, requests * rate * factor) for _ in range(count))
        return Counted(control, (others,) * count), Counted(worse, (requests,) * count)

    return draw


def ratios(requests: int, others: int) -> Draw:
    """The same errors as a ratio a sample, of which nobody says what it is of."""
    counted = errors(requests, others)

    def draw(chance: random.Random, count: int) -> Drawn:
        return plain(counted(chance, count))

    return draw


def bursts(requests: int, others: int, shape: float = 2.0, factor: float = 1.0) -> Draw:
    """Errors whose rate is another one in each minute, on each side for itself."""

    def draw(chance: random.Random, count: int) -> Drawn:
        rates = [
            [chance.gammavariate(shape, rate / shape) for _ in range(count)]
            for rate in (0.005, 0.005 * factor)
        ]
        return _at_rates(chance, rates[0], others), _at_rates(chance, rates[1], requests)

    return draw


def following_bursts(requests: int, others: int, correlation: float) -> Draw:
    """Such errors whose rate in one minute resembles that of the minute before."""

    def draw(chance: random.Random, count: int) -> Drawn:
        walks = (_walk(chance, correlation, count) for _ in "ab")
        rates = ([0.005 * math.exp(0.5 * each - 0.125) for each in walk] for walk in walks)
        return _at_rates(chance, next(rates), others), _at_rates(chance, next(rates), requests)

    return draw


def plain(sides: Drawn) -> tuple[list[float], list[float]]:
    """Both sides as series, as a judge without counts gets them."""
    control, experiment = (side.rates if isinstance(side, Counted) else side for side in sides)
    return control, experiment


def _at_rates(chance: random.Random, rates: list[float], requests: int) -> Counted:
    events = tuple(poisson(chance, requests * rate) for rate in rates)
    return Counted(events, (requests,) * len(rates))


def _walk(chance: random.Random, correlation: float, count: int) -> list[float]:
    rest = math.sqrt(1 - correlation * correlation)
    values = [chance.gauss(0, 1)]
    while len(values) < count:
        values.append(correlation * values[-1] + rest * chance.gauss(0, 1))
    return values


ALIKE = (
    Cell("errors 0.5 %, 200 of 400 requests", errors(200, 200)),
    Cell("errors 0.5 %, 200 of 2,000 requests", errors(200, 1800), 0.1),
    Cell("errors 0.5 %, 20 of 400 requests", errors(20, 380), 0.05),
    Cell("error ratios, 20 of 200 requests", ratios(20, 180), 0.1),
    Cell("error ratios, 20 of 400, nobody says so", ratios(20, 380), None),
    Cell("errors in bursts, 200 of 400 requests", bursts(200, 200)),
    Cell("errors in bursts, 200 of 2,000 requests", bursts(200, 1800), 0.1),
    Cell("events, Poisson 0.1", sparse(0.1)),
    Cell("normal", normal()),
    Cell("log-normal 0.5", lognormal(0.5)),
    Cell("log-normal 1", lognormal(1.0)),
    Cell("AR(1) 0.3", following(0.3)),
    Cell("AR(1) 0.5", following(0.5)),
    Cell("AR(1) 0.7", following(0.7)),
    Cell("log-normal 1 at AR(1) 0.7", following(0.7, 1.0)),
    Cell("AR(1) 0.7 that both share", shared()),
    Cell("errors in rare bursts, 200 of 400", bursts(200, 200, 0.5), promised=False),
    Cell("errors in rare bursts, 200 of 2,000", bursts(200, 1800, 0.5), 0.1, promised=False),
    Cell("errors in bursts, AR(1) 0.7", following_bursts(200, 200, 0.7), promised=False),
    Cell(
        "errors in bursts, AR(1) 0.7, 200 of 2,000",
        following_bursts(200, 1800, 0.7),
        0.1,
        promised=False,
    ),
)
RELEASE = Cell("a release with a metric of each kind that is promised", normal())
"""All of them together, which share one promise; it is not drawn by itself."""

WORSE = (
    Cell("errors 0.5 to 1 %, 200 of 400 requests", errors(200, 200, 2), alike=False),
    Cell("errors 0.5 to 1 %, 200 of 2,000 requests", errors(200, 1800, 2), 0.1, alike=False),
    Cell("errors 0.5 to 1 %, 20 of 400 requests", errors(20, 380, 2), 0.05, alike=False),
    Cell("errors 0.5 to 5 %, 20 of 400 requests", errors(20, 380, 10), 0.05, alike=False),
    Cell("errors in bursts 0.5 to 1 %, 200 of 400", bursts(200, 200, factor=2), alike=False),
    Cell("events, Poisson 0.1 to 0.5", sparse(0.1, 5), alike=False),
    Cell("log-normal 0.5, +25 %", lognormal(0.5, 1.25), alike=False),
    Cell("log-normal 0.5, +50 %", lognormal(0.5, 1.5), alike=False),
    Cell("log-normal 1, x 2", lognormal(1.0, 2), alike=False),
    Cell("normal, +0.8 sd", normal(0.8), alike=False),
    Cell("AR(1) 0.7 that both share, +0.25 sd", shared(0.25), alike=False),
    Cell("normal, sd x 5", normal(times=5), alike=False),
)
