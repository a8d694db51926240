"""The small language of conditions: `result[0] >= 0.95 && !isNaN(result[0])`, read into a tree.

The words are those of Argo Rollouts, whose users bring their conditions along. Nothing here is
handed to Python: the text becomes the nodes below and no others, bounded in length and depth;
`evaluation` walks them.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from fairlead import errors

MOST_CHARACTERS = 4096
MOST_DEPTH = 40
# A chain such as 1 + 1 + 1 is a deep tree too.
MOST_LINKS = 100

Scalar = float | str | bool | None


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, a text, true, false or nil."""

    at: int
    value: Scalar


@dataclass(frozen=True, slots=True)
class Name:
    """Something that is given: `result`, or `#` inside braces."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """`[1, 2]`."""

    at: int
    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Index:
    """`of[key]` or `of.key`."""

    at: int
    of: "Node"
    key: "Node"


@dataclass(frozen=True, slots=True)
class Call:
    """`name(arguments)`; the last one may be a test in braces."""

    at: int
    name: str
    arguments: tuple["Node", ...]
    test: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Unary:
    """`-value` or `!value`."""

    at: int
    operator: str
    value: "Node"


@dataclass(frozen=True, slots=True)
class Binary:
    """`left operator right`."""

    at: int
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Choice:
    """`test ? yes : no`."""

    at: int
    test: "Node"
    yes: "Node"
    no: "Node"


Node = Literal | Name | Sequence | Index | Call | Unary | Binary | Choice

SPELLINGS = {"and": "&&", "or": "||"}
WORDS: dict[str, Scalar] = {"true": True, "false": False, "nil": None, "null": None}
STRENGTHS = {
    "||": 10,
    "&&": 15,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in"), 20),
    "+": 30,
    "-": 30,
    "*": 60,
    "/": 60,
    "%": 60,
    "**": 100,
}
CHOICE, NOT, MINUS, BANG = 5, 18, 90, 95
TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)
  | (?P<text>"(?:[^"\\]|\\["\\])*"|'(?:[^'\\]|\\['\\])*')
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*|\#)
  | (?P<sign>\*\*|&&|\|\||==|!=|<=|>=|[-+*/%<>!?:()\[\]{},.])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text, with where it begins."""

    at: int
    kind: str
    text: str


END = "the end"


def parse(source: str) -> Node:
    """The condition as a tree, or Rejected with where it went wrong."""
    if len(source) > MOST_CHARACTERS:
        raise errors.Rejected(
            f"condition longer than {MOST_CHARACTERS} characters: {len(source)}",
            hint="let the query do the arithmetic",
        )
    return _Parser(source).parse()


def fault(source: str, at: int, problem: str, hint: str) -> NoReturn:
    raise errors.Rejected(f"{problem} at character {at + 1} of condition: {source}", hint=hint)


def _tokens(source: str) -> list[Token]:
    tokens, at = [], 0
    while at < len(source):
        found = TOKEN.match(source, at)
        if found is None:
            hint = "write a comparison such as result[0] >= 0.95"
            fault(source, at, f"unexpected {source[at]!r}", hint)
        kind = found.lastgroup or ""
        if kind != "space":
            tokens.append(Token(at, kind, SPELLINGS.get(found[0], found[0])))
        at = found.end()
    return [*tokens, Token(len(source), "end", END)]


class _Parser:
    """Reads by binding strength: an operator takes what binds tighter than itself."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._tokens = _tokens(source)
        self._next = 0
        self._depth = 0
        self._links = 0

    def parse(self) -> Node:
        node = self._expression(0)
        if self._peek().kind != "end":
            self._unexpected(self._peek())
        return node

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *texts: str) -> Token:
        token = self._peek()
        if texts and (token.text not in texts or token.kind == "text"):
            self._unexpected(token, " or ".join(texts))
        self._next += token.kind != "end"
        return token

    def _at(self, *texts: str) -> bool:
        token = self._peek()
        return token.text in texts and token.kind in ("sign", "word")

    def _unexpected(self, token: Token, wanted: str = "") -> NoReturn:
        said = token.text if token.kind == "end" else repr(token.text)
        hint = f"{wanted} is needed here" if wanted else "check brackets and operators before it"
        fault(self._source, token.at, f"unexpected {said}", hint)

    def _expression(self, strength: int) -> Node:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            hint = f"nest at most {MOST_DEPTH} deep"
            fault(self._source, self._peek().at, "too many brackets", hint)
        left = self._chain(self._prefix())
        while not self._ends(strength):
            left = self._infix(left)
        self._depth -= 1
        return left

    def _ends(self, strength: int) -> bool:
        token = self._peek()
        if token.kind not in ("sign", "word"):
            return True
        if token.text == "?":
            return strength > CHOICE
        if token.text == "not" and self._tokens[self._next + 1].text == "in":
            return strength >= STRENGTHS["in"]
        return STRENGTHS.get(token.text, 0) <= strength

    def _link(self) -> Token:
        token = self._take()
        self._links += 1
        if self._links > MOST_LINKS:
            hint = f"use at most {MOST_LINKS} operators and indexes"
            fault(self._source, token.at, "condition too long", hint)
        return token

    def _infix(self, left: Node) -> Node:
        token = self._link()
        if token.text == "?":
            yes = self._expression(0)
            self._take(":")
            return Choice(token.at, left, yes, self._expression(CHOICE))
        if token.text == "not":
            self._take("in")
            inside = Binary(token.at, "in", left, self._expression(STRENGTHS["in"]))
            return Unary(token.at, "!", inside)
        # Powers group from the right: 2 ** 3 ** 2 is 2 ** 9.
        strength = STRENGTHS[token.text] - (token.text == "**")
        return Binary(token.at, token.text, left, self._expression(strength))

    def _prefix(self) -> Node:  # noqa: PLR0911 - one return for each kind of beginning
        token = self._take()
        match token.kind, token.text:
            case "number", text:
                return Literal(token.at, float(text))
            case "text", text:
                return Literal(token.at, re.sub(r"\\(.)", r"\1", text[1:-1]))
            case "word", "not":
                return Unary(token.at, "!", self._expression(NOT))
            case "word", text:
                return self._word(token, text)
            case "sign", "!":
                return Unary(token.at, "!", self._expression(BANG))
            case "sign", "-":
                return Unary(token.at, "-", self._expression(MINUS))
            case "sign", "(":
                inside = self._expression(0)
                self._take(")")
                return inside
            case "sign", "[":
                return Sequence(token.at, self._listed("]", lambda: self._expression(0)))
            case "sign", ".":
                return self._own_field(token)
            case _:
                return self._unexpected(token)

    def _word(self, token: Token, text: str) -> Node:
        if text in WORDS:
            return Literal(token.at, WORDS[text])
        if text in STRENGTHS:
            self._unexpected(token)
        if not self._at("("):
            return Name(token.at, text)
        self._take("(")
        arguments: list[Node] = []
        test: Node | None = None
        while not self._at(")"):
            if self._at("{"):
                self._take("{")
                test = self._expression(0)
                self._take("}")
                break
            arguments.append(self._expression(0))
            if not self._at(")"):
                self._take(",")
        self._take(")")
        return Call(token.at, text, tuple(arguments), test)

    def _own_field(self, token: Token) -> Node:
        """`.field` inside braces is `#.field`."""
        field = self._take()
        if field.kind != "word":
            self._unexpected(field, "a field's name")
        return Index(token.at, Name(token.at, "#"), Literal(field.at, field.text))

    def _listed(self, end: str, item: Callable[[], Node]) -> tuple[Node, ...]:
        items: list[Node] = []
        while not self._at(end):
            items.append(item())
            if not self._at(end):
                self._take(",")
        self._take(end)
        return tuple(items)

    def _chain(self, node: Node) -> Node:
        while self._at("[", "."):
            token = self._link()
            if token.text == "[":
                key = self._expression(0)
                self._take("]")
            else:
                field = self._take()
                if field.kind != "word":
                    self._unexpected(field, "a field's name")
                key = Literal(field.at, field.text)
            node = Index(token.at, node, key)
        return node
