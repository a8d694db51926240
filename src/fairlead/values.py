"""Values that several areas share, and how an area declares what people may ask of its things."""

import datetime as dt
import decimal
import difflib
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NewType

from fairlead import errors

Percent = NewType("Percent", int)
NONE = Percent(0)
ALL = Percent(100)
LONGEST = dt.timedelta(days=366)
"""What anybody may ask us to wait: moments beyond the calendar cannot be kept, or told."""

# As apimachinery writes it: a sign, digits, and either an exponent or a unit. `12E` is 12 exa,
# `12E3` is twelve thousand. ASCII, because \d would take digits of other scripts too.
_QUANTITY = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?[0-9]{1,2})|(n|u|m|k|[MGTPE]|[KMGTPE]i))?"
)
_UNITS = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal(10**3),
    **{unit: Decimal(10 ** (6 + 3 * i)) for i, unit in enumerate("MGTPE")},
    **{f"{unit}i": Decimal(2 ** (10 * (i + 1))) for i, unit in enumerate("KMGTPE")},
}
_NAMES = "token|secret|passw|signature|auth|credential|jwt|session|apikey|accesskey"
_SECRET = re.compile(
    # The longest names are bounded, so that no text takes more than linear time.
    rf"(?P<user>://)[^/@\s\"'<>]{{1,400}}@"
    rf"|(?P<name>[?&;](?:[\w.-]{{0,40}}(?:{_NAMES})[\w.-]{{0,40}}|(?:[\w.-]{{0,40}}[_.-])?(?:key|sig|pwd|code))=)"
    r"[^&;#\s\"'<>\\]+",
    re.IGNORECASE,
)
_SMALLEST = Decimal("1e-9")
_MOST_LETTERS = 64
_MOST_LISTED = 8
# Enough digits for the longest text with the largest unit, so that nothing but _SMALLEST rounds.
_EXACT = decimal.Context(prec=300)


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What a person confirms before a verb whose way back is long."""

    question: str
    """In the terminal; {name} and {revision} stand for what is meant."""

    title: str
    text: str
    yes: str
    """In the page's dialog: its title, what will happen, and the button that agrees."""


@dataclass(frozen=True, slots=True)
class Verb:
    """Something people may ask of a thing; its command, button, route and annotation follow."""

    name: str
    command: str
    """Of the thing's machine, by the name of its type."""

    help: str
    """The one line that `fairlead --help` shows."""

    usage: str
    """What `fairlead VERB --help` says."""

    label: str
    """On its button."""

    tone: Literal["", "main", "danger"] = ""
    """How the button stands out."""

    confirm: Confirmation | None = None
    takes_reason: bool = False
    takes_revision: bool = False
    """Which one is meant; left out, it is the last good one where a verb has such."""

    restrains: bool = False
    """It only holds or rolls back: an object whose spec makes no sense may still ask for it."""

    deletes: bool = False
    """Afterwards there is no such thing: nobody asks for it by accident, and an object of a
    cluster is deleted there."""

    annotation_is_reason: bool = False
    """The value of its annotation is the reason, unless it is `true`."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that somebody may have meant; empty where none is near."""
    return next(iter(difflib.get_close_matches(word, known, n=1)), "")


def one_of(word: str, known: Iterable[str]) -> str:
    """The hint for a word that is none of the known ones."""
    every = sorted(known)
    meant = nearest(word, every)
    if meant and len(every) > _MOST_LISTED:
        return f"did you mean {meant}?"
    return (f"did you mean {meant}? " if meant else "") + f"use one of: {', '.join(every)}"


def percent(value: int) -> Percent:
    """A whole percent, or Rejected."""
    if isinstance(value, bool) or not 0 <= value <= ALL:
        raise errors.Rejected(f"percent outside 0-100: {value}", hint="use whole percents")
    return Percent(value)


def check_span(span: dt.timedelta, what: str) -> None:
    """Rejected where a time to wait ends after any release we could know."""
    if span > LONGEST:
        raise errors.Rejected(
            f"{what} longer than {LONGEST.days} d: {span.days} d",
            hint=f"use {LONGEST.days}d or less",
        )


def redacted(text: str) -> str:
    """The text without user names, passwords and tokens in the addresses that it holds."""
    return _SECRET.sub(_hidden, text) if "://" in text else text


def _hidden(found: re.Match[str]) -> str:
    return f"{found['user']}…@" if found["user"] else f"{found['name']}…"


def is_loopback(host: str) -> bool:
    """Whether whoever listens there is this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def quantity(text: str) -> Decimal | None:
    """A Kubernetes quantity as a number: 1500m is 1.5, 1Gi is 2**30; None where it is none.

    What is finer than a billionth is rounded up, as the API server does when it stores it.
    """
    match = _QUANTITY.fullmatch(text) if len(text) <= _MOST_LETTERS else None
    if match is None:
        return None
    number, exponent, unit = match.groups()
    value = _EXACT.create_decimal(f"{number}e{exponent or 0}")
    if unit:
        value = _EXACT.multiply(value, _UNITS[unit])
    value = value.quantize(_SMALLEST, decimal.ROUND_UP, _EXACT)
    # Without zeros at its end, and nothing is the same below zero.
    return _EXACT.add(_EXACT.normalize(value), 0)
