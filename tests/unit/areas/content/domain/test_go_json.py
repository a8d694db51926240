"""JSON as Go writes it; the expected texts are what Go 1.24's encoding/json printed."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from fairlead.areas.content.domain import go_json
from fairlead.areas.content.domain.go_json import Ordered

PROGRAM = """package main
import ("encoding/json"; "fmt"; "os")
func main() {
  var all []any
  if err := json.NewDecoder(os.Stdin).Decode(&all); err != nil { panic(err) }
  for _, each := range all { out, err := json.Marshal(each); if err != nil { panic(err) }
    fmt.Println(string(out)) }
}
"""
NUMBERS = [0.1, 100, 1e20, 1e21, 1.5e21, 1e-6, 1e-7, 123456789012345678, -2.5e-9, 1e300, 5e-324]
TEXTS = [
    "<a href='x'>&\"\\",
    "\u2028\u2029",
    "\x00\x1f\x7f\b\f\n\r\t",
    "\N{SNOWMAN}\N{GRINNING FACE}",
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": [1.0, 2.5], "a": None}, '{"a":null,"b":[1,2.5]}'),
        (Ordered(b=True, a=False), '{"b":true,"a":false}'),
        ("<&>\u2028", '"\\u003c\\u0026\\u003e\\u2028"'),
        ("\ud800x", '"\N{REPLACEMENT CHARACTER}x"'),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (-0.0, "-0"),
        (2**53 + 1, "9007199254740992"),
        ([], "[]"),
    ],
)
def test_values_are_written_as_go_writes_them(value: Any, text: str) -> None:
    assert go_json.encode(value) == text


@pytest.mark.parametrize("value", [1e400, object()])
def test_what_go_could_not_write_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        go_json.encode(value)


@given(strategies.recursive(strategies.text(), strategies.lists))
@settings(max_examples=50)
def test_what_is_written_reads_back(value: Any) -> None:
    expected = json.loads(json.dumps(value))

    assert json.loads(go_json.encode(value)) == expected


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
def test_go_itself_writes_the_same_bytes(tmp_path: Path) -> None:
    program = tmp_path / "main.go"
    program.write_text(PROGRAM)
    values: list[Any] = [*NUMBERS, *TEXTS, {"z": 1, "a": {"y": TEXTS, "b": NUMBERS}}]

    ran = subprocess.run(
        ["go", "run", str(program)],
        input=json.dumps(values).encode(),
        check=True,
        capture_output=True,
    )

    assert ran.stdout.decode().split("\n")[:-1] == [go_json.encode(each) for each in values]
