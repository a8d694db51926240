"""A name that there is not is refused when the condition is read, wherever it stands."""

import pytest

from fairlead import errors
from fairlead.analysis import conditions


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("nope > 1", "unknown name 'nope' at character 1"),
        ("result > 1 || reslut < 0", "unknown name 'reslut' at character 15"),
        ("len(result) == 0 ? true : avg(result) < 1", "unknown function 'avg' at character 27"),
        ("result[index] > 1", "unknown name 'index'"),
        ("max(result, other) > 1", "unknown name 'other'"),
        ("-nope > 1", "unknown name 'nope'"),
        ("result in [1, two]", "unknown name 'two'"),
        ("# > 1", "unknown name '#'"),
        ("all(result, {# < limit})", "unknown name 'limit'"),
        ("len(result, {# < 1})", "len takes no test in braces"),
        ("all(result)", "all needs a test in braces"),
    ],
)
def test_an_unknown_name_is_refused_before_it_is_evaluated(source: str, problem: str) -> None:
    with pytest.raises(errors.Rejected, match=problem.replace("(", r"\(")):
        conditions.read(source)


@pytest.mark.parametrize(
    "source",
    ["result.a[0] > 1", "all(result, {#.rate < 1 && .size > len(result)})", "asInt('5') == 5"],
)
def test_what_exists_is_read(source: str) -> None:
    assert conditions.read(source).source == source
