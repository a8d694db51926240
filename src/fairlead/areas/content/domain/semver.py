"""Strict semantic versions, read and refused as the original service reads and refuses them."""

import string
from dataclasses import dataclass

from fairlead import errors

Key = tuple[int, int, int, tuple[int, tuple[tuple[int, int, str], ...]]]
_HINT = "use MAJOR.MINOR.PATCH, such as 4.17.0 or 4.17.0-rc.1"
_DIGITS = frozenset(string.digits)
_IDENTIFIER = frozenset(string.ascii_letters + string.digits + "-")
_PARTS = 3
_MOST = 2**64 - 1
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Version:
    """A version, and by what it is ordered; build metadata does not count."""

    text: str
    key: Key


def parse(text: str) -> Version:
    """Rejected, in the words of the original, where the text is no strict semantic version."""
    if not text:
        raise _refused("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != _PARTS:
        raise _refused("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    rest, plus, build = parts[2].partition("+")
    number, dash, pre = rest.partition("-")
    patch = _number("Patch", number)
    labels = tuple(_label(each) for each in pre.split(".")) if dash else ()
    if plus:
        _check_build(build)
    # A release stands above all of its previews.
    return Version(text, (major, minor, patch, (0, labels) if dash else (1, ())))


def _number(name: str, text: str) -> int:
    if not _DIGITS.issuperset(text):
        raise _refused(f"Invalid character(s) found in {name.lower()} number {_quoted(text)}")
    if len(text) > 1 and text.startswith("0"):
        raise _refused(f"{name} number must not contain leading zeroes {_quoted(text)}")
    return _unsigned(text)


def _label(text: str) -> tuple[int, int, str]:
    """Numbers stand below words, and are compared as numbers."""
    if not text:
        raise _refused("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text.startswith("0"):
            said = "Numeric PreRelease version must not contain leading zeroes"
            raise _refused(f"{said} {_quoted(text)}")
        return 0, _unsigned(text), ""
    if not _IDENTIFIER.issuperset(text):
        raise _refused(f"Invalid character(s) found in prerelease {_quoted(text)}")
    return 1, 0, text


def _check_build(build: str) -> None:
    for each in build.split("."):
        if not each:
            raise _refused("Build meta data is empty")
        if not _IDENTIFIER.issuperset(each):
            raise _refused(f"Invalid character(s) found in build meta data {_quoted(each)}")


def _unsigned(text: str) -> int:
    if not text:
        raise _refused('strconv.ParseUint: parsing "": invalid syntax')
    # So many digits are too many, and int() of a long text takes its time.
    if len(text) > len(str(_MOST)) or int(text) > _MOST:
        raise _refused(f"strconv.ParseUint: parsing {_quoted(text)}: value out of range")
    return int(text)


def _quoted(text: str) -> str:
    """As Go quotes: printable characters stay, others are escaped."""
    shown = (
        _ESCAPES.get(each) or (each if each.isprintable() else _escaped(each)) for each in text
    )
    return f'"{"".join(shown)}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x80:  # noqa: PLR2004 - the last of ASCII
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - one UTF-16 unit


def _refused(message: str) -> errors.Rejected:
    return errors.Rejected(message, hint=_HINT)
