"""The benchmarks keep their word: names, one JSON object each, talk on the other channel."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench import __main__ as program
from bench import harness, table, walk
from bench.contestants.job import Job, percentile
from fairlead.engine import clock, messages

ROOT = Path(__file__).resolve().parents[3]
NOW = clock.from_millis(0)


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def tiny(tmp_path: Path) -> harness.Benchmark:
    """Our engine on SQLite against the raw loop, as small as it goes."""

    def run(effort: harness.Effort) -> harness.Result:
        rounds = harness.Rounds(
            {
                "ours": lambda: harness.contest("ours", Job(str(tmp_path / "ours.db"), 4, 2)),
                "raw": lambda: harness.contest("raw_sqlite", Job(str(tmp_path / "raw.db"), 8, 2)),
                "nobody": harness.peer("no_such_package", lambda: {"per_second": 1.0}),
            },
            effort.rounds,
        )
        result = harness.Result("tiny")
        result.add("ours_per_second", rounds.of("ours"))
        result.compare("raw_sqlite", rounds.of("ours"), rounds.of("raw"))
        result.compare("nobody_sqlite", rounds.of("ours"), rounds.of("nobody"))
        return result

    return harness.Benchmark("tiny", "a small one", run)


def test_list_names_every_benchmark() -> None:
    done = bench("list")

    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert names == [each.name for each in program.BENCHMARKS]
    assert {"engine", "lone", "scale", "waiting", "ended", "start", "kubernetes"} <= set(names)


def test_an_unknown_name_is_refused_with_a_hint() -> None:
    done = bench("run", "engin")

    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "error: no such benchmark: engin\nhint: did you mean engine?\n"


def test_json_is_one_object_and_nothing_else_on_standard_output() -> None:
    done = bench("run", "start", "--quick", "--json")

    (line,) = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert json.loads(line).keys() == {"name", "measurements", "ratios", "spread"}
    assert json.loads(line)["measurements"]["help_seconds"] > 0
    assert "bench: start" in done.stderr


def test_the_engine_runs_against_the_raw_loop_and_an_absent_peer_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = program.main(["run", "tiny", "--quick", "--json"], [tiny(tmp_path)])

    out, err = capsys.readouterr()
    found = json.loads(out)
    assert code == 0
    assert found["name"] == "tiny"
    assert found["measurements"]["ours_per_second"] > 0
    assert found["ratios"].keys() == {"raw_sqlite"}
    assert found["spread"].keys() == {"ours_per_second", "raw_sqlite"}
    assert "no_such_package is not installed" in err


def test_a_broken_promise_ends_the_run_with_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    def run(_: harness.Effort) -> harness.Result:
        return harness.Result("calm", {"asked": 3.0}, broken=["nothing is asked, found: 3"])

    code = program.main(["run", "calm", "--json"], [harness.Benchmark("calm", "at rest", run)])

    shown = capsys.readouterr()
    assert code == 1
    assert "broken" not in json.loads(shown.out)
    assert "error: a promise is broken: calm: nothing is asked, found: 3" in shown.err


def test_without_json_one_table_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.main(["run", "--quick"], [tiny(tmp_path)])

    head, _, measurement, ratio = capsys.readouterr().out.splitlines()
    assert head.split() == ["benchmark", "measurement", "value", "spread"]
    assert measurement.startswith("tiny       ours_per_second")
    assert ratio.startswith("tiny       ratio raw_sqlite")


def test_contestants_take_turns_and_one_that_fails_is_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    turns: list[str] = []

    def good(name: str) -> Mapping[str, float]:
        turns.append(name)
        return {"per_second": float(len(turns))}

    def bad() -> Mapping[str, float]:
        turns.append("bad")
        raise harness.Failed("out of breath")

    rounds = harness.Rounds({"a": lambda: good("a"), "bad": bad, "b": lambda: good("b")}, 2)

    assert turns == ["a", "bad", "b", "a", "b"]
    assert rounds.of("a") == [1.0, 4.0]
    assert rounds.of("bad") == []
    assert "bad is left out: out of breath" in capsys.readouterr().err


def test_a_child_that_breaks_says_why() -> None:
    with pytest.raises(harness.Failed, match="No module named"):
        harness.contest("no_such_contestant", Job(""))


def test_a_ratio_is_the_middle_of_its_rounds() -> None:
    result = harness.Result("any")

    result.compare("peer_sqlite", [10.0, 40.0, 90.0], [10.0, 10.0, 10.0])

    assert result.ratios == {"peer_sqlite": 4.0}
    assert result.spread == {"peer_sqlite": (1.0, 9.0)}


def test_the_table_keeps_three_digits() -> None:
    drawn = table.drawn([harness.Result("any", {"a": 12345.6, "b": 1.23456, "c": "why", "d": 0})])

    values = [line.split()[2] for line in drawn.splitlines()[2:]]
    assert values == ["12,346", "1.23", "why", "0"]


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(number) for number in range(100, 0, -1)]

    assert percentile(values, 0.5) == 51.0
    assert percentile(values, 0.99) == 100.0
    assert percentile([7.0], 0.99) == 7.0


def test_a_walk_takes_its_steps_and_ends() -> None:
    state: walk.State = walk.Still()
    commands: list[walk.Command] = [walk.Start("bench", 2), walk.Arrive(1), walk.Arrive(2)]
    effects: list[object] = []

    for command in commands:
        decision = walk.decide(state, command, NOW)
        effects.extend(decision.effects)
        for event in decision.events:
            assert isinstance(event, walk.Event)
            state = walk.evolve(state, event)

    assert state == walk.Home(2)
    assert effects == [walk.Step(1), walk.Step(2)]
    assert not walk.decide(state, walk.Arrive(2), NOW)


def test_a_walk_that_waits_asks_for_a_timer_and_no_step() -> None:
    decision = walk.decide(walk.Still(), walk.Start("bench", 2, 5000), NOW)

    timer = messages.SetTimer("pause", clock.from_millis(5000), walk.Arrive(1))
    assert decision.timers == (timer,)
    assert decision.effects == ()
