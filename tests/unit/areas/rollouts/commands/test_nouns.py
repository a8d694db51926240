"""Rollouts from the terminal: what is shown, what each verb does, how it is refused."""

import asyncio
import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import settings
from fairlead.areas.rollouts import detail, projection
from fairlead.areas.rollouts.commands import nouns
from fairlead.areas.rollouts.domain import states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.cli import app
from fairlead.console.context import CliContext
from tests.fakes import fleet
from tests.unit.areas.rollouts.domain import stories
from tests.unit.areas.rollouts.domain.world import BAD, Habits
from tests.unit.areas.rollouts.test_projection import views
from tests.unit.cli.conftest import Ran

Type = Callable[..., Ran]


@pytest.fixture
def behind() -> fleet.Fleet:
    return fleet.Fleet()


@pytest.fixture
def type_in(state_dir: Path, behind: fleet.Fleet, capsys: pytest.CaptureFixture[str]) -> Type:
    """Types a command line; the machines are those of rollouts."""

    def typed(*arguments: str) -> Ran:
        capsys.readouterr()
        code = app.run(arguments, CliContext(installation=behind.cast))
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return typed


@pytest.fixture
def halfway(state_dir: Path, behind: fleet.Fleet) -> Path:
    """A store in which version 2 of the shop has 10 % and waits for a person."""
    asyncio.run(_fill(state_dir, behind))
    return state_dir


async def _fill(folder: Path, behind: fleet.Fleet) -> None:
    chosen = settings.Settings(store=settings.StoreSettings(state_dir=folder))
    store = behind.cast().store(chosen.store)
    store.migrate()
    async with behind.cast().engine(chosen, store).running() as engine:
        await fleet.halfway(engine, "shop")
        await engine.projector.catch_up()


def test_the_list_has_a_line_for_each(halfway: Path, type_in: Type) -> None:
    said = type_in("get", "rollouts")

    heads, line = said.out.splitlines()
    assert (said.code, heads.split()[:3]) == (0, ["ROLLOUT", "PHASE", "STABLE"])
    assert line.split()[:7] == ["shop", "AwaitingApproval", "v1", "v2", "10", "%", "1/3"]
    assert line.endswith("v2 was requested")


def test_one_is_shown_with_steps_checks_history_and_verbs(halfway: Path, type_in: Type) -> None:
    said = type_in("get", "rollout", "shop")

    assert said.code == 0
    assert "v1 90 % [===========================###] 10 % v2" in said.out
    assert "approve, promote, pause, abort" in said.out
    assert "current (needs approval)" in said.out
    assert "error rate" in said.out
    assert "HISTORY OF v2" in said.out


def test_programs_get_the_same_as_from_the_api(halfway: Path, type_in: Type) -> None:
    every = json.loads(type_in("get", "rollouts", "-o", "json").out)
    one = json.loads(type_in("get", "rollout", "shop", "-o", "json").out)

    assert every == [one["rollout"]]
    assert one["verbs"] == ["approve", "promote", "pause", "abort", "delete"]


def test_an_empty_store_says_so(state_dir: Path, type_in: Type) -> None:
    type_in("store", "migrate")

    said = type_in("get", "rollouts")

    assert (said.code, said.out, said.err.strip()) == (0, "", "no rollouts")


def test_a_name_that_is_not_there_leads_to_the_list(halfway: Path, type_in: Type) -> None:
    for line in (("get", "rollout", "none"), ("abort", "rollout/none", "--yes")):
        said = type_in(*line)

        assert said.code == 4
        assert "error: no such rollout: none" in said.err
        assert "hint: list them with fairlead get rollouts" in said.err


def test_a_bare_name_of_nothing_names_what_has_the_verb(halfway: Path, type_in: Type) -> None:
    said = type_in("abort", "none", "--yes")

    assert said.code == 4
    assert "error: no such name: none\nhint: it may be one of: rollouts, " in said.err


def test_a_name_with_a_slip_leads_to_the_nearest(halfway: Path, type_in: Type) -> None:
    for line in (("get", "rollout", "shpo"), ("watch", "rollout", "shpo"), ("pause", "shpo")):
        said = type_in(*line)

        assert said.code == 4
        assert "error: no such rollout: shpo\nhint: did you mean shop?" in said.err


def test_a_pause_is_kept_with_its_reason_and_who_asked(
    halfway: Path, type_in: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "ann")

    said = type_in("pause", "shop", "--why", "stock count")

    assert (said.code, said.err.strip()) == (0, "taken"), said.err
    assert "paused by ann: stock count" in said.out


def test_a_verb_with_nothing_to_do_is_no_error(halfway: Path, type_in: Type) -> None:
    type_in("pause", "shop")

    said = type_in("pause", "shop")

    assert (said.code, said.err.strip()) == (0, "nothing changed")


def test_the_same_id_is_taken_once(halfway: Path, type_in: Type) -> None:
    first = json.loads(type_in("pause", "shop", "--id", "p1", "-o", "json").out)
    type_in("resume", "shop")
    again = json.loads(type_in("pause", "shop", "--id", "p1", "-o", "json").out)

    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert again["rollout"]["phase"] == "AwaitingApproval"


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (("retry", "shop"), "the rollout is in progress", "abort it first, or promote it"),
        (("rollback", "shop", "v9", "--yes"), "no such kept revision: v9", "kept revisions: none"),
    ],
)
def test_a_verb_out_of_place_says_what_would_work(
    halfway: Path, type_in: Type, line: tuple[str, ...], message: str, hint: str
) -> None:
    said = type_in(*line)

    assert said.code in (4, 6)
    assert f"error: {message}" in said.err
    assert f"hint: {hint}" in said.err


@pytest.mark.parametrize("verb", ["approve", "promote", "abort"])
def test_a_verb_that_fits_is_taken(halfway: Path, type_in: Type, verb: str) -> None:
    said = type_in(verb, "shop")

    assert (said.code, said.err.strip()) == (0, "taken"), said.err
    assert said.out.count("\n") == 1


def test_a_deletion_from_a_script_takes_a_yes(halfway: Path, type_in: Type) -> None:
    said = type_in("delete", "shop")

    assert (said.code, said.out) == (3, "")
    assert "error: not confirmed: Delete shop: stop all of its versions" in said.err
    assert "hint: fairlead delete shop --yes" in said.err
    assert type_in("get", "rollout", "shop").code == 0


def test_what_was_deleted_is_said_and_is_gone(halfway: Path, type_in: Type) -> None:
    said = type_in("delete", "shop", "--yes")

    assert (said.code, said.out) == (0, "deleted: rollout shop\n")
    assert type_in("get", "rollout", "shop").code == 4
    assert type_in("delete", "shop", "--yes").code == 4


def test_a_deletion_tells_programs_what_it_deleted(halfway: Path, type_in: Type) -> None:
    said = json.loads(type_in("delete", "shop", "--yes", "-o", "json").out)

    assert said == {"events": said["events"], "duplicate": False, "deleted": "shop"}


def test_without_a_revision_a_run_rolls_back_to_stable(halfway: Path, type_in: Type) -> None:
    said = type_in("rollback", "shop")

    assert (said.code, said.err.strip()) == (0, "taken"), said.err


def test_watch_tells_each_change_once(
    halfway: Path, type_in: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = iter(("pause", "", "stop"))

    def in_between(_: float) -> None:
        turn = next(turns)
        if turn == "stop":
            raise KeyboardInterrupt
        if turn:
            app.run((turn, "shop"), CliContext(installation=fleet.Fleet().cast))

    monkeypatch.setattr(time, "sleep", in_between)

    said = type_in("watch", "rollout", "shop", "-o", "json")

    phases = [json.loads(line)["phase"] for line in said.out.splitlines() if '"title"' in line]
    assert said.code == 130
    assert phases == ["AwaitingApproval", "Paused"]


def test_a_name_is_for_rollouts_only(halfway: Path, type_in: Type) -> None:
    for line in (("get", "rollout/shop", "extra"), ("watch", "rollout/shop", "extra")):
        assert type_in(*line).code == 2


def test_the_stream_behind_it_stays_reachable(halfway: Path, type_in: Type) -> None:
    said = type_in("get", "rollout/shop")

    assert said.code == 0
    assert "Analysing" in said.out


def test_why_a_run_began_is_not_told_as_the_end_of_the_one_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = stories.live(habits=Habits(verdicts={"v2": BAD}))
    told.run_until(states.Shifting)
    told.run_until(states.Idle)
    told.want("v3", Spec())
    told.run_until(states.Shifting)

    now = dt.datetime(2031, 1, 1, tzinfo=dt.UTC)
    nouns.show(detail.of(projection.follow(projection.BLANK, views(told)), now))

    last = next(line for line in capsys.readouterr().out.splitlines() if "last run" in line)
    assert last.split(maxsplit=4)[2:4] == ["v2", "RolledBack:"]
    assert "requested" not in last


def test_a_baseline_is_shown_beside_the_stable_version() -> None:
    at = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
    one = projection.Summary(
        *("ns/shop/u1", "shop", "Progressing", "at 10 %", "v1", "v1", "v2"),
        *(80, 10, 1, 2, at, at),
        baseline_weight=10,
    )

    assert "v1 80 % + 10 % baseline [========================---###] 10 % v2" in nouns.line(one)
