"""How fast we may ask: a token bucket of our own, and holds that the API server asks for.

Pure: every function takes the time and says how long to wait. Priority and fairness sorts
our requests into levels by UID; a 429 from one level must not hold back the others (a lease
renewal travels in a level of its own), so holds are kept per level.
"""

import dataclasses

# What a Retry-After may ask of us; a wrong header must not stop us for an hour.
_LONGEST_HOLD = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on one client's demands."""

    rate: float = 500.0
    """Requests a second, in the long run. High: the API server's own fairness is the fine
    bound; this one keeps a fault of ours from becoming a flood."""
    burst: int = 1000
    """Requests at once after a pause."""
    at_once: int = 32
    """Requests on their way at the same time, watches aside. Each holds a TLS connection of some
    150 kB; with a thousand effects in flight, an unbounded client would open a thousand."""
    timeout: float = 30.0
    """Seconds for one attempt of one call."""
    attempts: int = 5
    """Tries of a call that may be repeated without harm."""
    first_delay: float = 0.2
    """Seconds before the second try; doubles, with jitter."""
    longest_delay: float = 10.0
    page: int = 500
    """Objects a list page holds."""


class Bucket:
    """A token bucket that hands out reservations: callers wait in the order they came."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._seen = now

    def reserve(self, now: float) -> float:
        """Take a token and say how many seconds to wait before using it."""
        self._fill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)

    def try_take(self, now: float) -> bool:
        """Take a token if there is one; nobody waits for it."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _fill(self, now: float) -> None:
        passed = max(0.0, now - self._seen)
        self._seen = max(self._seen, now)
        self._tokens = min(self._burst, self._tokens + passed * self._rate)


class Holds:
    """Levels that asked us to wait, and what we know of who travels in which level."""

    def __init__(self) -> None:
        self._levels: dict[str, str] = {}
        self._until: dict[str, float] = {}

    def learn(self, flow: str, level: str) -> None:
        """An answer for `flow` (a verb and resource) came through priority level `level`."""
        if level:
            self._levels[flow] = level

    def hold(self, flow: str, level: str, seconds: float, now: float) -> None:
        self.learn(flow, level)
        until = now + min(seconds, _LONGEST_HOLD)
        self._until[level] = max(until, self._until.get(level, 0.0))

    def wait(self, flow: str, now: float) -> float:
        """Seconds until `flow` may go; an unlabelled hold (no level named) holds everything."""
        level = self._levels.get(flow, "")
        until = max(self._until.get(level, 0.0), self._until.get("", 0.0))
        return max(0.0, until - now)


def delay(limits: Limits, attempt: int, chance: float) -> float:
    """Wait before try number `attempt` + 1; `chance` in [0, 1) spreads clients apart."""
    longest = min(limits.longest_delay, limits.first_delay * 2.0 ** (attempt - 1))
    return float(longest * (0.5 + chance / 2))
