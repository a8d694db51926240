"""A schedule: every state with every command, and what clocks and downtimes do to its times."""

import datetime as dt
import itertools
from dataclasses import replace
from typing import Any

import pytest

from fairlead import errors
from fairlead.areas.deployments.domain.definition import Remove, Removed, Store, Stored
from fairlead.areas.deployments.domain.schedule import (
    SCHEDULE,
    AimRun,
    Armed,
    Due,
    Fired,
    RefuseRun,
    ReportTarget,
    RunRefused,
    RunStarted,
    Schedule,
)
from fairlead.areas.deployments.domain.trigger.messages import Source, Start, Target
from fairlead.engine import machine
from fairlead.engine.messages import CancelTimer, SetTimer
from fairlead.engine.testing import given

NIGHTLY: dict[str, Any] = {
    "environment": "prod",
    "application": "shop",
    "name": "nightly",
    "branch": "main",
    "cron": "30 2 * * *",
    "time_zone": "UTC",
    "catch_up": "once",
    "most": 2,
}


def at(day: int, hour: int = 2, minute: int = 30) -> dt.datetime:
    return dt.datetime(2026, 3, day, hour, minute, tzinfo=dt.UTC)


SOURCE = Source("github", "acme/shop", "refs/heads/main", reports=True)
TARGET = Target("prod", "shop", "shop.yaml")
STORED = (Stored(1, NIGHTLY, "ann"), Armed("prod/shop/nightly", at(1, 9), at(2)))
FIRED = Fired((at(2),), 0, at(2), at(3))
STATES = {
    "ABSENT": given(SCHEDULE),
    "ARMED": given(SCHEDULE, *STORED),
    "AIMING": given(SCHEDULE, *STORED, FIRED),
    "REMOVED": given(SCHEDULE, *STORED, FIRED, Removed(2, "ann")),
}
COMMANDS = {
    "store": Store({**NIGHTLY, "cron": "0 5 * * *"}, "bob"),
    "the same": Store(NIGHTLY, "bob"),
    "of 9": Store(NIGHTLY, "bob", expects=9),
    "remove": Remove("bob"),
    "due": Due(at(2)),
    "due next": Due(at(3)),
    "target": ReportTarget(at(2), SOURCE, TARGET),
    "refuse": RefuseRun(at(2), "gone"),
}
TABLE = {
    ("ABSENT", "store"): ("Stored", "Armed"),
    ("ABSENT", "the same"): ("Stored", "Armed"),
    ("ARMED", "store"): ("Stored", "Armed"),
    ("ARMED", "remove"): ("Removed",),
    ("ARMED", "due"): ("Fired",),
    ("AIMING", "store"): ("Stored", "Armed"),
    ("AIMING", "remove"): ("Removed",),
    ("AIMING", "due next"): ("Fired",),
    ("AIMING", "target"): ("RunStarted",),
    ("AIMING", "refuse"): ("RunRefused",),
    ("REMOVED", "store"): ("Stored", "Armed"),
    ("REMOVED", "the same"): ("Stored", "Armed"),
}


@pytest.mark.parametrize(("state", "command"), list(itertools.product(STATES, COMMANDS)))
def test_every_state_has_an_answer_to_every_command(state: str, command: str) -> None:
    now = replace(STATES[state], now=at(2))
    if command == "of 9":
        with pytest.raises(errors.Conflict):
            now.when(COMMANDS[command])
        return

    then = now.when(COMMANDS[command]).decision

    assert tuple(type(each).__name__ for each in then.events) == TABLE.get((state, command), ())


def test_the_table_has_every_command_and_people_have_none_of_them() -> None:
    vocabulary = SCHEDULE.vocabulary

    assert {type(one) for one in COMMANDS.values()} == {*machine.members(vocabulary.commands)}
    assert machine.members(vocabulary.verbs) == ()


def test_an_answer_starts_a_trigger_in_the_name_of_whoever_stored_the_schedule() -> None:
    then = STATES["AIMING"].when(COMMANDS["target"])

    name = "prod/shop/nightly:20260302T0230Z"
    then.then(RunStarted(at(2), name))
    (send,) = then.decision.sends
    start = send.command
    assert isinstance(start, Start)
    assert (send.stream, start.trigger, start.by) == (f"trigger/{name}", name, "schedule:ann")
    assert start.cause == "schedule prod/shop/nightly, 2026-03-02 02:30 UTC"
    assert (then.state.last, then.state.aiming) == (name, ())


def test_what_cannot_be_deployed_is_told() -> None:
    then = STATES["AIMING"].when(COMMANDS["refuse"])

    then.then(RunRefused(at(2), "gone"))
    assert (then.state.note, then.state.aiming) == ("gone", ())


def test_a_schedule_that_was_removed_wakes_nobody() -> None:
    then = STATES["ARMED"].when(Remove("bob"))

    assert then.decision.timers == (CancelTimer("due"),)
    assert SCHEDULE.decide(then.state, Due(at(2)), at(2)).events == ()


def test_an_edit_does_not_make_up_for_times_before_it() -> None:
    edited = {**NIGHTLY, "cron": "0 4 * * *"}
    then = replace(STATES["ARMED"], now=at(2, 5)).when(Store(edited, "bob"))

    assert then.state.next == at(3, 4, 0)
    assert then.decision.timers == (SetTimer("due", at(3, 4, 0), Due(at(3, 4, 0))),)


def decided(content: dict[str, Any], now: dt.datetime, since: dt.datetime | None = None) -> Fired:
    """What the timer of the first time after `since` makes of it, when it is taken now."""
    state = SCHEDULE.evolve(Schedule(), Stored(1, content, "ann"))
    armed = SCHEDULE.decide(Schedule(), Store(content, "ann"), since or at(1, 9)).events[1]
    assert isinstance(armed, Armed)
    assert armed.next is not None
    state = SCHEDULE.evolve(state, armed)
    then = SCHEDULE.decide(state, Due(armed.next), now)
    (fired,) = then.events
    assert isinstance(fired, Fired)
    assert [each.at for each in then.effects if isinstance(each, AimRun)] == list(fired.runs)
    if fired.next is not None:
        assert then.timers == (SetTimer("due", fired.next, Due(fired.next)),)
    return fired


LATE = {"a few seconds": dt.timedelta(seconds=40), "exactly": dt.timedelta()}


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
@pytest.mark.parametrize("policy", ["skip", "once", "all"])
def test_what_is_on_time_is_deployed_whatever_the_policy(policy: str, late: dt.timedelta) -> None:
    fired = decided({**NIGHTLY, "catch_up": policy}, at(2) + late)

    assert (fired.runs, fired.missed, fired.next) == ((at(2),), 0, at(3))


@pytest.mark.parametrize(
    ("policy", "runs", "missed"),
    [("skip", (), 4), ("once", (at(5),), 3), ("all", (at(4), at(5)), 2)],
)
def test_a_long_downtime_is_one_decision(
    policy: str, runs: tuple[dt.datetime, ...], missed: int
) -> None:
    fired = decided({**NIGHTLY, "catch_up": policy}, at(5, 20, 0))

    assert (fired.runs, fired.missed, fired.next) == (runs, missed, at(6))


def test_one_that_is_on_time_makes_up_for_those_before_it() -> None:
    fired = decided(NIGHTLY, at(5, 2, 30))

    assert (fired.runs, fired.missed) == ((at(5),), 3)


def test_years_of_minutes_are_bounded() -> None:
    every = {**NIGHTLY, "cron": "* * * * *", "catch_up": "all", "most": 50}

    fired = decided(every, at(2).replace(year=2046))

    assert (len(fired.runs), fired.missed) == (50, 950)


def test_a_clock_that_is_set_back_repeats_nothing() -> None:
    state = STATES["AIMING"].state

    # The timer of the time that was decided, once more; and the next one, by a clock behind ours.
    again = SCHEDULE.decide(state, Due(at(2)), at(2))
    behind = SCHEDULE.decide(state, Due(at(3)), at(1))

    assert again.events == ()
    (fired,) = behind.events
    assert isinstance(fired, Fired)
    assert (fired.runs, fired.next) == ((at(3),), at(4))


def test_a_clock_that_is_set_forward_is_a_downtime() -> None:
    fired = decided({**NIGHTLY, "catch_up": "skip"}, at(20, 12, 0))

    assert (fired.runs, fired.missed, fired.next) == ((), 19, at(21))


def test_a_day_of_23_hours_and_one_of_25_have_one_run_each() -> None:
    berlin = {**NIGHTLY, "time_zone": "Europe/Berlin"}
    spring = dt.datetime(2026, 3, 29, 1, 30, tzinfo=dt.UTC)
    autumn = dt.datetime(2026, 10, 25, 0, 30, tzinfo=dt.UTC)

    for moment in (spring, autumn):
        fired = decided(berlin, moment, moment - dt.timedelta(hours=12))

        assert fired.runs == (moment,)
        assert fired.next is not None
        assert dt.timedelta(hours=22) < fired.next - moment < dt.timedelta(hours=26)
