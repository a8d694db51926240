"""What is kept of each run for a later look: its plan, its numbers and its verdicts."""

import datetime as dt

import msgspec

from fairlead.analysis.conditions import Phase
from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts import history, projection
from fairlead.areas.rollouts.domain import events, messages, states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.slots import Slot, SlotTraffic
from fairlead.checks.spec import SUCCESS_RATE, Check, Finding
from tests.unit.areas.rollouts.domain import stories
from tests.unit.areas.rollouts.domain.world import World
from tests.unit.areas.rollouts.test_projection import views

OFTEN = Limits(interval=dt.timedelta(seconds=1))
SUCCESS = Check("success", SUCCESS_RATE, low=99, limits=OFTEN)
SHADOW = Check("shadow", success="result < 1", limits=OFTEN, dry_run=True)
COUNTED = (SlotTraffic(Slot.PRIMARY, 260, 0, 11.0), SlotTraffic(Slot.CANARY, 29, 4, 14.0))


def rolled_back() -> World:
    """Version 2 fails its first round, with the numbers of both slots."""
    told = stories.live(Spec(stories.STEPS, (SUCCESS, SHADOW)))
    told.run_until(states.Analysing)
    told.run(lambda: told.state().round.asked is not None)
    finding = Finding("success", Phase.FAILED, "4 of 29 requests failed", 86.2, 99.0, "%")
    told.send(messages.Judged(told.state().round.ticket, (finding,), COUNTED))
    told.run_until(states.Idle)
    return told


def runs(told: World) -> history.Runs:
    return projection.follow(projection.BLANK, views(told)).runs


def test_the_event_of_a_round_keeps_what_the_slots_did() -> None:
    (measured,) = [event for event in rolled_back().told() if isinstance(event, events.Measured)]

    assert measured.traffic == COUNTED


def test_an_ended_run_keeps_its_numbers_threshold_and_verdict() -> None:
    (run,) = runs(rolled_back())

    (mark,) = run.checks
    (point,) = mark.points
    assert (point.value, point.phase, mark.limit, mark.unit) == (86.2, "Failed", 99.0, "%")
    assert [(each.slot, each.step, each.requests, each.failed) for each in run.traffic] == [
        (Slot.PRIMARY, 1, 260, 0),
        (Slot.CANARY, 1, 29, 4),
    ]


def test_a_run_keeps_which_version_it_was_to_replace_and_its_plan_and_checks() -> None:
    told = rolled_back()
    told.want("v3", stories.SPEC)
    told.run_until(states.Idle)

    latest, first = runs(told)

    assert (latest.stable, latest.target, first.stable, first.target) == ("v1", "v3", "v1", "v2")
    assert [step.weight for step in first.plan] == [10, 50, 100]
    assert first.rules == (
        history.Rule("success", SUCCESS_RATE, dry_run=False),
        history.Rule("shadow", "", dry_run=True),
    )
    assert [rule.check for rule in latest.rules] == ["errors"]


def test_what_is_kept_comes_back_as_it_was() -> None:
    """As after a restart: the row is all that there is."""
    sheet = projection.follow(projection.BLANK, views(rolled_back()))

    row = msgspec.json.decode(msgspec.json.encode(projection.write(sheet)))

    assert projection.read(row).runs == sheet.runs
