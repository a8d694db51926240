"""How long to wait: by the class of an error, never in step with others, never less than asked."""

import datetime as dt
import hashlib

from fairlead.areas.resources.domain.reconcile.messages import ErrorClass, Failure

_SECOND = dt.timedelta(seconds=1)
_MINUTE = dt.timedelta(minutes=1)
_HOUR = dt.timedelta(hours=1)

PACES = {
    ErrorClass.TRANSIENT: (2 * _SECOND, 2 * _MINUTE),
    ErrorClass.BUSY: (5 * _SECOND, 3 * _MINUTE),
    ErrorClass.DEPENDENCY: (15 * _SECOND, 5 * _MINUTE),
    ErrorClass.THROTTLED: (30 * _SECOND, 10 * _MINUTE),
    ErrorClass.CREDENTIALS: (30 * _SECOND, 10 * _MINUTE),
    ErrorClass.REFUSED: (10 * _MINUTE, 6 * _HOUR),
}
"""First and longest wait; it doubles in between."""

POLL = (5 * _SECOND, _MINUTE)
VERIFY = (_SECOND, 10 * _SECOND)
LONGEST_ASKED = 6 * _HOUR
_DOUBLINGS = 20
_LEAST, _SPREAD = 0.75, 0.5


def after(failure: Failure, tries: int, salt: str) -> dt.timedelta:
    return waited(PACES[failure.kind], tries, salt, failure.retry_after)


def waited(
    pace: tuple[dt.timedelta, dt.timedelta],
    tries: int,
    salt: str,
    asked: dt.timedelta | None = None,
) -> dt.timedelta:
    """Of the pace, give or take a quarter; where the API asked for more, that and a little."""
    first, longest = pace
    own = jittered(min(first * 2 ** min(tries, _DOUBLINGS), longest), salt)
    if asked is None:
        return own
    # Everybody hears the same figure: those who all came back then would be refused again.
    return max(own, min(asked, LONGEST_ASKED) * (0.25 + jitter(salt)))


def jittered(span: dt.timedelta, salt: str) -> dt.timedelta:
    return span * jitter(salt)


def jitter(salt: str) -> float:
    """From 0.75 to 1.25, the same for the same salt."""
    number = int.from_bytes(hashlib.sha256(salt.encode()).digest()[:4])
    return _LEAST + _SPREAD * number / 0xFFFFFFFF
