"""A file that somebody hands in: its mistakes are told where they stand."""

from pathlib import Path

import pytest

from fairlead import errors, validation
from fairlead.console.files import Document

SHOP = """\
# The shop.
name: shop
version: 1.10
opens: 10:30
program:
  command: [shop, --port, 80]
checks:
  - name: errors
    qurey: up
"""


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "shop.yaml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def placed(tmp_path: Path, path: str, hint: str = "fix it") -> errors.Problem:
    document = Document.read(written(tmp_path, SHOP))
    with pytest.raises(errors.Invalid) as caught, document.placed():
        raise validation.refusal(path, "wrong", hint)
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("", 2, 1),
        ("version", 3, 1),
        ("program.command[2]", 6, 27),
        ("program.env", 5, 1),
        ("checks[0].qurey", 9, 5),
        ("checks[0].query", 8, 5),
        ("nowhere.at.all", 2, 1),
    ],
)
def test_a_mistake_is_told_at_its_line(tmp_path: Path, path: str, line: int, column: int) -> None:
    problem = placed(tmp_path, path)

    assert (problem.line, problem.column) == (line, column)
    assert str(problem).startswith(f"{tmp_path}/shop.yaml:{line}:{column}: ")


@pytest.mark.parametrize(
    ("path", "typed"), [("version", "1.10"), ("opens", "10:30"), ("program.command[2]", "80")]
)
def test_what_belongs_in_quotes_is_shown_as_it_was_typed(
    tmp_path: Path, path: str, typed: str
) -> None:
    assert placed(tmp_path, path, validation.QUOTE).hint == f'put it in quotes: "{typed}"'


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name: [", ":2:1: not YAML or JSON: "),
        ("name: 'a", ":2:1: not YAML or JSON: "),
        ("a: 1\n\tb: 2", ":2:1: not YAML or JSON: "),
        ("day: 2030-02-31", ": not YAML or JSON: day is out of range"),
        ("[" * 2000, ": not YAML or JSON: "),
    ],
)
def test_what_is_no_yaml_is_told_at_its_line(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(errors.Invalid) as caught:
        Document.read(written(tmp_path, f"{text}\n"))

    assert f"shop.yaml{place}" in caught.value.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3\n", ["shop.yaml:3:1: a: given twice"]),
        ('{"a": 1, "a": 2}', ["shop.yaml:1:10: a: given twice"]),
        (
            "a: [{b: 1, b: 2}]\nc: {b: 1}\nc: 1\n",
            ["shop.yaml:1:12: b: given twice", "shop.yaml:3:1: c: given twice"],
        ),
    ],
)
def test_a_field_that_stands_there_twice_is_told_beside_other_mistakes(
    text: str, told: list[str]
) -> None:
    document = Document.parse("shop.yaml", text)

    with pytest.raises(errors.Invalid) as alone, document.placed():
        pass
    with pytest.raises(errors.Invalid) as beside, document.placed():
        raise validation.refusal("", "wrong", "fix it")

    assert [str(each) for each in alone.value.problems] == told
    assert len(beside.value.problems) == len(told) + 1


def test_an_anchor_that_is_named_twice_is_no_field_given_twice() -> None:
    with Document.parse("shop.yaml", "a: &a {x: 1}\nb: {<<: *a, x: 2}\nc: *a\n").placed():
        pass


def test_an_empty_file_has_no_lines_to_point_at(tmp_path: Path) -> None:
    document = Document.read(written(tmp_path, ""))

    with pytest.raises(errors.Invalid, match=r"shop\.yaml: expected a map"), document.placed():
        raise validation.refusal("", "expected a map, got nothing", "write fields")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    with pytest.raises(errors.NotFound, match="cannot read the file"):
        Document.read(str(file))
    file.write_bytes(b"\xff")
    with pytest.raises(errors.Rejected, match="not a text in UTF-8"):
        Document.read(str(file))
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(errors.Rejected, match="larger than"):
        Document.read(str(file))


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(
            [
                "a0: &a0 [x, x]",
                *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)),
            ]
        ),
        "\n".join(
            [
                "a0: &a0 {x: 1}",
                *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)),
            ]
        ),
        "a: &a [*a]",
    ],
    ids=["lists", "merged maps", "within itself"],
)
def test_anchors_that_make_a_small_file_large_are_refused(text: str) -> None:
    with pytest.raises(errors.Invalid, match="more than 100000 parts"):
        Document.parse("shop.yaml", text)


def test_anchors_that_save_words_are_not(tmp_path: Path) -> None:
    document = Document.read(written(tmp_path, "a: &a {x: 1}\nb: [*a, *a]\nc: {<<: *a}\n"))

    assert document.content == {"a": {"x": 1}, "b": [{"x": 1}] * 2, "c": {"x": 1}}
