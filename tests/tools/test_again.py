import pytest

from tools import again


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ("tests/a.py::test_one@cluster", "tests/a.py::test_one"),
        ("tests/a.py::test_one[real]@cluster", "tests/a.py::test_one[real]"),
        ("tests/a.py::test_one[me@here]", "tests/a.py::test_one[me@here]"),
        ("tests/a.py::test_one", "tests/a.py::test_one"),
    ],
)
def test_a_group_is_no_part_of_a_test_s_name(told: str, known: str) -> None:
    assert again.plain([told]) == [known]


def test_each_failed_test_runs_once_more_and_in_its_order() -> None:
    assert again.plain(["b@one", "a", "b"]) == ["b", "a"]
