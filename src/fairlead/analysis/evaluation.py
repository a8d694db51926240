"""What a condition says of a result: walks the tree of `expression`, bounded in steps."""

import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, assert_never

from fairlead.analysis import expression

MOST_STEPS = 100_000
_SCALARS = {"a boolean", "a number", "a text"}

Value = Any  # what JSON can say: numbers, texts, booleans, nil, lists and objects


def evaluate(source: str, tree: expression.Node, given: Mapping[str, Value]) -> Value:
    """The value of the tree with these names, or Rejected with where it makes no sense."""
    return _Walk(source).value(tree, given)


def holds(source: str, tree: expression.Node, given: Mapping[str, Value]) -> bool:
    """Whether the condition is true; one that is neither true nor false is Rejected."""
    value = evaluate(source, tree, given)
    if not isinstance(value, bool):
        hint = "compare it, as in result[0] >= 0.95"
        expression.fault(source, 0, f"{_kind(value)} where true or false is needed", hint)
    return value


class _Walk:
    """One evaluation, with the steps it has taken."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._steps = 0

    def value(  # noqa: PLR0911 - one return for each kind of node
        self, node: expression.Node, given: Mapping[str, Value]
    ) -> Value:
        self._steps += 1
        if self._steps > MOST_STEPS:
            self._fault(node, f"more than {MOST_STEPS} steps", "let the query narrow the result")
        match node:
            case expression.Literal():
                return node.value
            case expression.Name():
                return self._named(node, given)
            case expression.Sequence():
                return [self.value(item, given) for item in node.items]
            case expression.Index():
                return self._indexed(node, self.value(node.of, given), self.value(node.key, given))
            case expression.Call():
                return self._called(node, given)
            case expression.Unary():
                return self._unary(node, given)
            case expression.Binary():
                return self._binary(node, given)
            case expression.Choice():
                chosen = node.yes if self._truth(node.test, given) else node.no
                return self.value(chosen, given)
            case unreachable:
                assert_never(unreachable)

    def _fault(self, node: expression.Node, problem: str, hint: str) -> NoReturn:
        expression.fault(self._source, node.at, problem, hint)

    def _truth(self, node: expression.Node, given: Mapping[str, Value]) -> bool:
        value = self.value(node, given)
        if not isinstance(value, bool):
            self._fault(node, f"{_kind(value)} where true or false is needed", "compare it first")
        return value

    def _named(self, node: expression.Name, given: Mapping[str, Value]) -> Value:
        if node.name not in given:
            known = ", ".join(sorted(given))
            self._fault(node, f"unknown name {node.name!r}", f"known are {known}")
        return given[node.name]

    def _indexed(self, node: expression.Index, of: Value, key: Value) -> Value:
        if isinstance(of, Mapping) and isinstance(key, str):
            return of.get(key)
        if isinstance(of, list) and _is_number(key) and float(key).is_integer():
            if -len(of) <= key < len(of):
                return of[int(key)]
            hint = "ask for len(result) first, or set what no data means"
            self._fault(node, f"no item {int(key)} in a list of {len(of)}", hint)
        hint = "lists take whole numbers, objects take names"
        return self._fault(node, f"{_kind(of)} has no item {key!r}", hint)

    def _called(self, node: expression.Call, given: Mapping[str, Value]) -> Value:
        arguments = [self.value(argument, given) for argument in node.arguments]
        self._steps += _size(arguments)
        if node.test is not None:
            return self._over(node, arguments, given)
        function = FUNCTIONS.get(node.name)
        if function is None:
            known = ", ".join(sorted({*FUNCTIONS, *OVER_LISTS}))
            self._fault(node, f"unknown function {node.name!r}", f"known are {known}")
        try:
            return function(*arguments)
        except (TypeError, ValueError, OverflowError):
            said = ", ".join(map(_kind, arguments)) or "nothing"
            self._fault(node, f"{node.name} cannot take {said}", "see docs/reference/judge.md")

    def _over(
        self, node: expression.Call, arguments: list[Value], given: Mapping[str, Value]
    ) -> Value:
        gather = OVER_LISTS.get(node.name)
        if gather is None or len(arguments) != 1 or not isinstance(arguments[0], list):
            known = ", ".join(sorted(OVER_LISTS))
            problem = f"{node.name} is not asked of each item of a list"
            self._fault(node, problem, f"write {known}, as in all(result, {{# < 1}})")
        assert node.test is not None
        items = arguments[0]
        told = [self.value(node.test, {**given, "#": item}) for item in items]
        if node.name != "map" and not all(isinstance(one, bool) for one in told):
            self._fault(node.test, "the test in braces is not true or false", "compare it")
        return gather(items, told)

    def _unary(self, node: expression.Unary, given: Mapping[str, Value]) -> Value:
        if node.operator == "!":
            return not self._truth(node.value, given)
        value = self.value(node.value, given)
        if not _is_number(value):
            self._fault(node, f"{_kind(value)} cannot be negated", "use asFloat on texts")
        return -value

    def _binary(self, node: expression.Binary, given: Mapping[str, Value]) -> Value:
        if node.operator == "&&":
            return self._truth(node.left, given) and self._truth(node.right, given)
        if node.operator == "||":
            return self._truth(node.left, given) or self._truth(node.right, given)
        left, right = self.value(node.left, given), self.value(node.right, given)
        self._steps += _size([left, right])
        if node.operator in ("==", "!="):
            self._check_equal(node, left, [right])
            return _is_same(left, right) == (node.operator == "==")
        if node.operator == "in":
            return self._inside(node, left, right)
        texts = isinstance(left, str) and isinstance(right, str) and node.operator in ORDERS
        if texts or (_is_number(left) and _is_number(right)):
            return BINARIES[node.operator](left, right)
        problem = f"{_kind(left)} {node.operator} {_kind(right)} makes no sense"
        return self._fault(node, problem, "pick one item, as in result[0]; use asFloat on texts")

    def _inside(self, node: expression.Binary, left: Value, right: Value) -> bool:
        if isinstance(right, list):
            self._check_equal(node, left, right)
            return any(_is_same(left, item) for item in right)
        if isinstance(right, Mapping) and isinstance(left, str):
            return left in right
        return self._fault(
            node, f"nothing is in {_kind(right)}", "put a list or an object to the right"
        )

    def _check_equal(self, node: expression.Node, left: Value, others: list[Value]) -> None:
        """Rejected where none can be equal: such a limit would pass or fail for ever."""
        kinds = [_kind(each) for each in others]
        if _kind(left) in _SCALARS and kinds and set(kinds) <= _SCALARS - {_kind(left)}:
            hint = "use asFloat on texts, and true and false without quotes"
            self._fault(node, f"{_kind(left)} is never {kinds[0]}", hint)


def _size(values: list[Value]) -> int:
    """Lists cost as many steps as they have items, or nested tests could take for ever."""
    return sum(len(value) for value in values if isinstance(value, list))


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_same(left: Value, right: Value) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _kind(value: Value) -> str:
    match value:
        case None:
            return "nil"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _divide(left: float, right: float) -> float:
    """As floats divide everywhere but in Python: by zero gives an infinity, or no number."""
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)


def _remainder(left: float, right: float) -> float:
    return math.fmod(left, right) if right and math.isfinite(left) else math.nan


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BINARIES: dict[str, Callable[[Any, Any], Value]] = {
    **ORDERS,
    "+": lambda left, right: float(left) + float(right),
    "-": lambda left, right: float(left) - float(right),
    "*": lambda left, right: float(left) * float(right),
    "/": _divide,
    "%": _remainder,
    "**": _power,
}


def _number(value: Value) -> float:
    if not _is_number(value):
        raise TypeError
    return float(value)


def _as_float(value: Value) -> float:
    return float(value) if isinstance(value, str) else _number(value)


def _as_int(value: Value) -> float:
    return float(int(value) if isinstance(value, str) else math.trunc(_number(value)))


def _length(value: Value) -> float:
    return float(len(value))


def _or_default(value: Value, fallback: Value) -> Value:
    return fallback if value is None or value == [] else value


def _numbers(values: tuple[Value, ...]) -> list[float]:
    listed = values[0] if len(values) == 1 and isinstance(values[0], list) else list(values)
    return [_number(value) for value in listed]


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "isNaN": lambda value: math.isnan(_number(value)),
    "isInf": lambda value: math.isinf(_number(value)),
    "isNil": lambda value: value is None,
    "len": _length,
    "default": _or_default,
    "asFloat": _as_float,
    "asInt": _as_int,
    "abs": lambda value: abs(_number(value)),
    "sum": lambda *values: math.fsum(_numbers(values)),
    "min": lambda *values: min(_numbers(values)),
    "max": lambda *values: max(_numbers(values)),
}
OVER_LISTS: dict[str, Callable[[list[Value], list[Value]], Value]] = {
    "all": lambda _, told: all(told),
    "any": lambda _, told: any(told),
    "none": lambda _, told: not any(told),
    "one": lambda _, told: told.count(True) == 1,
    "count": lambda _, told: float(told.count(True)),
    "map": lambda _, told: told,
    "filter": lambda items, told: [item for item, kept in zip(items, told, strict=True) if kept],
}
