"""The pages about the judge say what the judge does."""

import json
import re
from pathlib import Path

import click.testing
import msgspec

from fairlead.analysis import document, evaluation, fields, judge
from fairlead.cli import judge as command

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXPLANATION = (DOCS / "explanation" / "judge.md").read_text(encoding="utf-8")
REFERENCE = (DOCS / "reference" / "judge.md").read_text(encoding="utf-8")


def example(name: str) -> str:
    found = re.search(rf"<!-- example: {name} -->\n```\w*\n(.*?)```", EXPLANATION, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_worked_example_is_what_the_command_says() -> None:
    then = click.testing.CliRunner().invoke(command.judge, ["-"], input=example("case"))

    assert then.stdout == example("text")
    assert then.exit_code == 11


def test_every_field_is_in_the_reference() -> None:
    structs: list[type[msgspec.Struct]] = [
        *(fields.Config, fields.Classifier, fields.ScoreThresholds, fields.Metric),
        *(fields.Canary, fields.EffectSize, fields.Outliers, fields.Judge),
        fields.PlannedLooks,
    ]
    names = {field.encode_name for one in structs for field in msgspec.structs.fields(one)}

    missing = {name for name in names if not re.search(rf"[`.]{name}\b", REFERENCE)}

    assert missing == set()


def test_every_field_that_is_printed_is_in_the_reference() -> None:
    case = document.parse(example("case").encode())
    told = document.told(judge.judge(case))

    printed = {*told, *told["metrics"][0], *told["groups"][0]}

    assert {name for name in printed if not re.search(rf"[`.]{name}\b", REFERENCE)} == set()


def test_every_exit_code_and_limit_is_in_the_reference() -> None:
    for verdict, code in command.EXIT_CODES.items():
        assert f"| {code} | {verdict.value}" in REFERENCE
    assert f"{document.MOST_BYTES // 1024**2} MiB" in REFERENCE
    assert f"{document.MOST_METRICS:,} metrics" in REFERENCE
    assert f"{document.MOST_SAMPLES:,} samples" in REFERENCE


def test_every_function_of_conditions_is_in_the_reference() -> None:
    names = {*evaluation.FUNCTIONS, *evaluation.OVER_LISTS}

    assert {name for name in names if f"`{name}`" not in REFERENCE} == set()


def test_the_example_is_json() -> None:
    assert list(json.loads(example("case"))) == ["config", "control", "experiment"]
