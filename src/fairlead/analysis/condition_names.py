"""Whether all that a condition names exists: asked when it is read, not when it is evaluated.

A condition may have branches that no result reaches for weeks, and a misspelt name in one of them
would then fail the release that reaches it.
"""

from fairlead.analysis import evaluation, expression
from fairlead.analysis.condition_arity import RESULT

ITEM = "#"


def check(source: str, tree: expression.Node) -> None:
    """Rejected at the first name or function that there is not."""
    _check(source, tree, frozenset({RESULT}))


def _check(source: str, node: expression.Node, known: frozenset[str]) -> None:
    match node:
        case expression.Name(at, name) if name not in known:
            hint = f"known are {', '.join(sorted(known))}"
            expression.fault(source, at, f"unknown name {name!r}", hint)
        case expression.Call():
            _check_call(source, node, known)
        case _:
            for each in _parts(node):
                _check(source, each, known)


def _check_call(source: str, node: expression.Call, known: frozenset[str]) -> None:
    listed = node.test is not None
    if node.name not in (evaluation.OVER_LISTS if listed else evaluation.FUNCTIONS):
        every = {*evaluation.FUNCTIONS, *evaluation.OVER_LISTS}
        problem, hint = f"unknown function {node.name!r}", f"known are {', '.join(sorted(every))}"
        if node.name in every:
            problem = f"{node.name} {'takes no' if listed else 'needs a'} test in braces"
            hint = "write all(result, {# < 1}), and len(result)"
        expression.fault(source, node.at, problem, hint)
    for argument in node.arguments:
        _check(source, argument, known)
    if node.test is not None:
        _check(source, node.test, known | {ITEM})


def _parts(node: expression.Node) -> tuple[expression.Node, ...]:
    match node:
        case expression.Sequence(items=items):
            return items
        case expression.Index(of=of, key=key):
            return of, key
        case expression.Unary(value=value):
            return (value,)
        case expression.Binary(left=left, right=right):
            return left, right
        case expression.Choice(test=test, yes=yes, no=no):
            return test, yes, no
        case _:
            return ()
