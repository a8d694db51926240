"""Our errors are a contract: each fate has its own exit code and status, and always a hint."""

import pytest

from fairlead import errors

FATES = [
    (errors.Rejected, 3, 400),
    (errors.NotFound, 4, 404),
    (errors.Unauthorised, 5, 401),
    (errors.Conflict, 6, 409),
    (errors.Unavailable, 7, 503),
    (errors.Corrupt, 8, 500),
]


@pytest.mark.parametrize(("fate", "exit_code", "status"), FATES)
def test_each_fate_has_its_exit_code_and_status(
    fate: type[errors.FairleadError], exit_code: int, status: int
) -> None:
    error = fate("no such stream: depot/a", hint="list them")

    assert (error.exit_code, error.http_status) == (exit_code, status)
    assert (str(error), error.message, error.hint) == (
        "no such stream: depot/a",
        "no such stream: depot/a",
        "list them",
    )


def test_no_two_fates_end_the_program_with_the_same_code() -> None:
    codes = [fate.exit_code for fate, _, _ in FATES]

    assert len({*codes, errors.FairleadError.exit_code, 0, 2}) == len(codes) + 3


def test_an_error_without_a_hint_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="hint"):
        errors.Rejected("no")  # type: ignore[call-arg]  # the point of the test


def test_what_is_not_there_or_not_allowed_is_also_rejected() -> None:
    assert issubclass(errors.NotFound, errors.Rejected)
    assert issubclass(errors.Unauthorised, errors.Rejected)
    assert not issubclass(errors.Conflict, errors.Rejected)


def test_mistakes_are_told_together_and_one_by_one() -> None:
    problems = [errors.Problem(f"steps[{n}]", "empty", f"fill {n}") for n in range(5)]
    placed = errors.Problem("name", "missing", "add it", "shop.yaml", 3, 1)

    assert errors.Invalid(problems[:1]).message == "steps[0]: empty"
    assert errors.Invalid(problems).message == (
        "steps[0]: empty; steps[1]: empty; steps[2]: empty; and 2 more"
    )
    assert errors.Invalid(problems).hint == "fill 0"
    assert str(placed) == "shop.yaml:3:1: name: missing"
