"""Whether a condition asks for a number or for a list: `result < 1` or `result[0] < 1`.

A query may come to several numbers. Who wrote a condition over one must hear of it, and who wrote
one over a list gets a list, also of one number.
"""

import dataclasses
from collections.abc import Iterator

from fairlead.analysis import evaluation, expression

RESULT = "result"
COMPARED = {"<", "<=", ">", ">=", "=="}
OF_LISTS = {"len", "sum", "min", "max", *evaluation.OVER_LISTS}


def wants_list(tree: expression.Node) -> bool:
    """Whether the result is picked from, gone through or counted anywhere in the tree."""
    return any(_over_items(node) for node in _nodes(tree))


def limit(tree: expression.Node) -> float | None:
    """The number that the result is compared with, where the tree is nothing else."""
    match tree:
        case expression.Binary(operator=operator, left=left, right=expression.Literal(value=value)):
            plain = operator in COMPARED and (_is_result(left) or _over_items(left))
            if plain and isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
            return None
        case _:
            return None


def _over_items(node: object) -> bool:
    match node:
        case expression.Index(of=expression.Name(name=name)):
            return name == RESULT
        case expression.Call(name=name, arguments=arguments) if name in OF_LISTS:
            return any(_is_result(argument) for argument in arguments)
        case expression.Binary(operator="in", right=right):
            return _is_result(right)
        case _:
            return False


def _is_result(node: object) -> bool:
    return isinstance(node, expression.Name) and node.name == RESULT


def _nodes(node: object) -> Iterator[object]:
    if isinstance(node, tuple):
        for one in node:
            yield from _nodes(one)
    elif dataclasses.is_dataclass(node):
        yield node
        for field in dataclasses.fields(node):
            yield from _nodes(getattr(node, field.name))
