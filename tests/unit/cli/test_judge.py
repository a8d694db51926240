"""`fairlead judge`: exit codes, both outputs, standard input, refusals."""

import json
from pathlib import Path
from typing import Any

import click.testing
import pytest

from fairlead.analysis import document
from fairlead.cli import judge as command

CALM = [100, 102, 98, 101, 99, 100, 103, 97, 100, 101]
SLOW = [value + 30 for value in CALM]


def case(experiment: dict[str, Any], **config: Any) -> str:
    metrics = [{"name": "latency", "groups": ["speed"]}, {"name": "errors", "groups": ["health"]}]
    return json.dumps(
        {
            "config": {"metrics": metrics} | config,
            "control": {"latency": CALM, "errors": CALM},
            "experiment": experiment,
        }
    )


def run(text: str, *options: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(command.judge, ["-", *options], input=text)


@pytest.mark.parametrize(
    ("experiment", "limits", "code", "verdict"),
    [
        ({"latency": CALM, "errors": CALM}, {}, 0, "Pass"),
        ({"latency": SLOW, "errors": CALM}, {"marginal": 50}, 10, "Marginal"),
        ({"latency": SLOW, "errors": SLOW}, {"marginal": 50}, 11, "Fail"),
    ],
)
def test_every_verdict_has_its_exit_code(
    experiment: dict[str, Any], limits: dict[str, float], code: int, verdict: str
) -> None:
    then = run(case(experiment, scoreThresholds=limits), "-o", "json")

    assert then.exit_code == code
    assert json.loads(then.stdout)["verdict"] == verdict


@pytest.mark.parametrize(
    ("policy", "code"), [("inconclusive", 12), ("wait", 13), ("pass", 0), ("fail", 11)]
)
def test_no_data_has_its_exit_code(policy: str, code: int) -> None:
    metrics = [
        {"name": "latency", "analysisConfigurations": {"canary": {"noData": policy}}},
        {"name": "errors"},
    ]

    assert run(case({"errors": CALM}, metrics=metrics)).exit_code == code


def test_json_is_all_that_is_on_standard_output() -> None:
    then = run(case({"latency": SLOW, "errors": CALM}), "-o", "json")

    told = json.loads(then.stdout)
    assert told["score"] == 50
    assert [metric["label"] for metric in told["metrics"]] == ["High", "Pass"]
    assert told["groups"][0] == {"name": "speed", "score": 0.0, "weight": 50.0}
    assert then.stderr == ""


def test_text_says_the_verdict_first_then_the_numbers_then_why() -> None:
    then = run(case({"latency": SLOW, "errors": CALM}))

    assert then.stdout.splitlines() == [
        "Fail: score 50 is below the marginal limit of 75: latency is High",
        "",
        "metric   label  ratio  low  high  estimate",
        "latency  High   1.3    27   33    30",
        "errors   Pass   1      -    -     -",
        "",
        "score 50",
        "group speed: score 0, weight 50",
        "group health: score 100, weight 50",
        "",
        (
            "latency: mean 130.1 against 100.1 of control; a shift of 27 to 33 (99.132% confidence,"
            " one look); chance alone does so once in 1.848e+05"
        ),
        "errors: both sides are identical",
    ]


def test_critical_and_muted_metrics_are_marked() -> None:
    metrics = [
        {"name": "latency", "analysisConfigurations": {"canary": {"critical": True}}},
        {"name": "errors", "analysisConfigurations": {"canary": {"muted": True}}},
    ]

    then = run(case({"latency": SLOW, "errors": [0.0] * 10}, metrics=metrics))

    assert "High (critical)" in then.stdout
    assert "Low (muted)" in then.stdout


def test_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(case({"latency": CALM, "errors": CALM}), encoding="utf-8")

    then = click.testing.CliRunner().invoke(command.judge, [str(file)])

    assert then.exit_code == 0
    assert then.stdout.startswith("Pass: score 100 reaches the pass limit of 95\n")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    then = click.testing.CliRunner().invoke(command.judge, [str(tmp_path / "no.json")])

    assert then.exit_code == 4
    assert then.stderr.startswith("error: no such file: ")
    assert "\nhint: " in then.stderr


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    then = click.testing.CliRunner().invoke(command.judge, [str(tmp_path)])

    assert then.exit_code == 3
    assert "hint: name a file that you may read" in then.stderr


def test_what_is_refused_says_where_and_what_to_do() -> None:
    then = run(case({"latency": CALM}, scoreThresholds={"marginal": 90, "pass": 80}))

    assert then.exit_code == 3
    assert then.stdout == ""
    assert then.stderr.splitlines() == [
        (
            "error: input is not a case to judge: marginal 90 is above pass 80"
            " at: config.scoreThresholds"
        ),
        "hint: a marginal score is one that does not yet pass",
    ]


def test_more_than_the_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "MOST_BYTES", 100)

    then = run(" " * 500)

    assert then.exit_code == 3
    assert "input larger than 100 bytes" in then.stderr


def test_help_tells_the_exit_codes() -> None:
    then = click.testing.CliRunner().invoke(command.judge, ["--help"])

    assert then.exit_code == 0
    for code in (*command.EXIT_CODES.values(), 3, 4):
        assert f"\n    {code} " in then.stdout
