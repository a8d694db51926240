"""SQL text to single statements, by PostgreSQL's lexical rules alone.

What a statement does is for PostgreSQL to say. Here only its end is found, past quotes, dollar
quotes, nested comments, parentheses and bodies in BEGIN ATOMIC. A mistake cannot smuggle anything:
each piece is sent by a protocol message that takes one statement.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from fairlead import errors

MOST_TOKENS = 200
"""Of a statement: more are not needed to know its kind."""

_CONTINUED = r"(?:[ \t\f\v]|--[^\n]*)*\n(?:\s|--[^\n]*\n)*'"
_ESCAPED = r"(?:[^'\\]|\\.|'')*"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+|--[^\n]*)
  | (?P<block>/\*)
  | (?P<escape>[eE]'{_ESCAPED}'(?:{_CONTINUED}{_ESCAPED}')*)
  | (?P<word>[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*)
  | (?P<number>[0-9][\w.]*)
  | (?P<string>'[^']*(?:''[^']*)*')
  | (?P<quoted>"[^"]*(?:""[^"]*)*")
  | (?P<dollar>\$(?:[A-Za-z_\x80-\U0010ffff][A-Za-z0-9_\x80-\U0010ffff]*)?\$)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement as it is sent, without the comments before it."""

    sql: str
    line: int
    tokens: tuple[str, ...]
    """Its first words in capitals, other tokens as they stand, without comments."""

    def starts(self, *words: str) -> bool:
        return self.tokens[: len(words)] == words

    def __contains__(self, word: str) -> bool:
        return word in self.tokens


def split(text: str) -> list[Statement]:
    """The statements of a file in order."""
    return list(_split(text))


@dataclass(slots=True)
class _Open:
    """The statement that is being read."""

    tokens: list[str]
    start: int = -1
    parentheses: int = 0
    atomic: int = 0

    def take(self, lexeme: str, at: int) -> None:
        if self.start < 0:
            self.start = at
        if self._in_routine():
            self._body(lexeme)
        if len(self.tokens) < MOST_TOKENS:
            self.tokens.append(lexeme)
        if lexeme in "()":
            self.parentheses += 1 if lexeme == "(" else -1

    def _in_routine(self) -> bool:
        head = self.tokens[:4]
        return head[:1] == ["CREATE"] and bool({"FUNCTION", "PROCEDURE"} & {*head})

    def _body(self, lexeme: str) -> None:
        # A body in BEGIN ATOMIC has semicolons of its own; a CASE in it has an END of its own.
        if lexeme == "ATOMIC" and self.tokens[-1:] == ["BEGIN"]:
            self.atomic = 1
        elif self.atomic and lexeme == "CASE":
            self.atomic += 1
        elif self.atomic and lexeme == "END":
            self.atomic -= 1

    def ends(self, lexeme: str) -> bool:
        return lexeme == ";" and self.parentheses <= 0 and not self.atomic


def _split(text: str) -> Iterator[Statement]:
    current, last, line, counted = _Open([]), 0, 1, 0
    for token, at, end in _tokens(text):
        if current.ends(token):
            if current.start >= 0:
                line, counted = line + text.count("\n", counted, current.start), current.start
                yield _made(text, current, at, line)
            current = _Open([])
        else:
            current.take(token, at)
        last = end
    if current.start >= 0:
        yield _made(text, current, last, line + text.count("\n", counted, current.start))


def _made(text: str, current: _Open, end: int, line: int) -> Statement:
    return Statement(text[current.start : end].rstrip(), line, tuple(current.tokens))


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Each token that means something, with its beginning and end."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "any character is a token"
        end, kind = found.end(), found.lastgroup
        if kind == "block":
            end = _comment_end(text, at)
        elif kind == "dollar":
            end = _closing(text, found[0], at)
        elif kind == "other" and found[0] in "'\"":
            raise _unfinished(text, at, "quote")
        elif kind == "other" and found[0] == "\\":
            raise _meta_command(text, at)
        if kind not in ("space", "block"):
            yield (found[0].upper() if kind == "word" else text[at:end]), at, end
        at = end


def _comment_end(text: str, start: int) -> int:
    depth, at = 1, start + 2
    while depth:
        edge = _COMMENT_EDGE.search(text, at)
        if edge is None:
            raise _unfinished(text, start, "comment")
        depth += 1 if edge[0] == "/*" else -1
        at = edge.end()
    return at


def _closing(text: str, tag: str, start: int) -> int:
    end = text.find(tag, start + len(tag))
    if end < 0:
        raise _unfinished(text, start, f"dollar quote {tag}")
    return end + len(tag)


def _unfinished(text: str, at: int, what: str) -> errors.Rejected:
    line = text.count("\n", 0, at) + 1
    return errors.Rejected(
        f"unreadable SQL: {what} without an end, begun in line: {line}",
        hint="close it, or take the line out",
    )


def _meta_command(text: str, at: int) -> errors.Rejected:
    line = text.count("\n", 0, at) + 1
    return errors.Rejected(
        f"a command of psql, which PostgreSQL itself does not know, in line: {line}",
        hint="write SQL alone; data of COPY goes in as INSERT",
    )
