"""`fairlead content bucket`: ids from arguments and files, both outputs, refusals."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Ran

Type = Callable[..., Ran]


def test_each_id_has_its_bucket_and_whether_it_is_inside(run: Type) -> None:
    then = run("content", "bucket", "--group", "gr1", "--percent", "73", "123", "124", "-o", "json")

    assert json.loads(then.out)["123"] == {"bucket": 73, "enabled": True}
    assert list(json.loads(then.out)) == ["123", "124"]


def test_below_its_bucket_an_id_is_outside(run: Type) -> None:
    then = run("content", "bucket", "--group", "gr1", "--percent", "72.9", "123")

    assert then.out.splitlines() == ["ID   BUCKET  ENABLED", "123  73      no"]


def test_ids_come_from_a_file_by_line(run: Type, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text("999\r\n\n123\n")

    then = run(
        *("content", "bucket", "--group", "groupX", "--percent", "25", "-o", "json"),
        *("--file", str(ids)),
    )

    assert json.loads(then.out)["999"] == {"bucket": 25, "enabled": True}
    assert set(json.loads(then.out)) == {"999", "123"}


@pytest.mark.parametrize("percent", ["-1", "100.1", "nan", "many"])
def test_what_is_no_percentage_is_refused(run: Type, percent: str) -> None:
    then = run("content", "bucket", "--group", "g", f"--percent={percent}", "123")

    assert then.code == 2
    assert "not a percentage" in then.err


def test_ids_and_a_file_together_or_neither_are_refused(run: Type) -> None:
    then = run("content", "bucket", "--group", "g", "--percent", "1")

    assert then.code == 2
    assert "give either ids or --file" in then.err
