"""The row of a rollout: what it tells at each place, and that folding it in parts is the same."""

import datetime as dt

import msgspec

from fairlead.analysis.conditions import Phase
from fairlead.areas.rollouts import detail, history, projection
from fairlead.areas.rollouts.domain import actions, messages, states
from fairlead.areas.rollouts.domain.plan.spec import Spec
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Finding
from fairlead.engine import projections, visibility
from fairlead.engine.messages import StreamName
from fairlead.values import Percent
from tests.unit.areas.rollouts.domain import stories, world
from tests.unit.areas.rollouts.domain.world import BAD, CODECS, Habits, World

NOW = world.START + dt.timedelta(hours=1)
APPROVED = Spec(
    Strategy(steps=(Pace(Percent(10), approve=True), Pace(Percent(50)))), (stories.ERRORS,)
)


def views(told: World, name: str = "shop") -> list[visibility.EventView]:
    """A rollout's events as the store would show them, a second apart."""
    words = CODECS["rollout"].events
    found = []
    for n, event in enumerate(told.told(name), 1):
        row = words.encode(event)
        at = world.START + n * world.SECOND
        data = msgspec.json.decode(row.data)
        stream = StreamName(f"rollout/{name}")
        place = visibility.Place(0, n)
        found.append(
            visibility.EventView(stream, n, row.type, row.version, data, "test", at, place)
        )
    return found


def sheet(told: World, name: str = "shop") -> projection.Sheet:
    return projection.follow(projection.BLANK, views(told, name))


def promoted() -> World:
    told = stories.live()
    told.run_until(states.Idle)
    return told


def test_the_sheet_ends_in_the_very_state_of_the_machine() -> None:
    told = promoted()

    assert sheet(told).state == told.state()


def test_a_row_that_is_kept_after_each_event_is_the_same_as_one_fold() -> None:
    told = promoted()
    row: projections.Row | None = None
    for event in views(told):
        # As the store keeps it: through JSON and back.
        folded = projection.ROLLOUTS.fold(row, [event])
        row = msgspec.json.decode(msgspec.json.encode(folded))

    assert projection.read(row) == sheet(told)


def test_events_that_were_seen_already_change_nothing() -> None:
    told = views(promoted())

    once = projection.follow(projection.BLANK, told)

    assert projection.follow(once, told) == once


def test_a_row_of_another_shape_is_built_anew() -> None:
    row = projection.write(sheet(promoted()))

    assert projection.read({**row, "shape": 0}) is projection.BLANK


def test_a_deleted_rollout_has_no_row_and_a_new_one_starts_afresh() -> None:
    told = promoted()
    told.send(messages.Delete())
    row: projections.Row | None = None
    for event in views(told):
        row = projection.ROLLOUTS.fold(row, [event])
    told.want("v9", stories.SPEC)
    again = views(told)
    new = projection.ROLLOUTS.fold(row, [again[[each.type for each in again].index("Removed") + 1]])

    assert row is None
    assert new is not None
    assert new["summary"]["phase"] == "Starting"
    at_once = projection.ROLLOUTS.fold(None, again)
    assert at_once is not None
    assert not at_once["runs"]


def test_a_rollout_that_is_deleted_while_a_plan_follows_it_has_no_row_either() -> None:
    """Else nobody's row would be told any more: the fold would stand at an event without a past."""
    told = promoted()
    told.want("v3", stories.SPEC)
    told.run_until(states.Analysing)
    request = messages.Request("shop", stories.SPEC, world.version("v3"), 3)
    told.send(messages.Follow(request, "rollout-step/d1"))
    told.send(messages.Delete("ann"))

    row: projections.Row | None = None
    for event in views(told):
        row = projection.ROLLOUTS.fold(row, [event])

    assert row is None
    assert {"Followed", "FollowEnded"} <= {each.type for each in views(told)}


def test_only_rollouts_have_rows() -> None:
    told = promoted()
    event = views(told)[0]
    other = visibility.EventView(
        StreamName("limiter/shop"), 1, event.type, 1, {}, "test", event.at, event.place
    )

    assert (projection.ROLLOUTS.key(event), projection.ROLLOUTS.key(other)) == (
        "rollout/shop",
        None,
    )


def test_while_the_primary_becomes_the_new_version_its_slot_says_so() -> None:
    told = stories.live()
    told.run_until(states.Promoting)

    summary = sheet(told).summary()

    assert (summary.phase, summary.stable, summary.primary, summary.canary) == (
        "Promoting",
        "v1",
        "v2",
        "v2",
    )
    assert (summary.primary_weight, summary.canary_weight) == (0, 100)


def test_a_run_keeps_its_steps_its_weights_and_what_each_check_said() -> None:
    told = promoted()

    (run,) = sheet(told).runs

    assert [(step.number, step.weight) for step in run.steps] == [(1, 10), (2, 50), (3, 100)]
    assert all(step.reached and step.reached >= step.began for step in run.steps)
    assert [weight.weight for weight in run.weights] == [0, 10, 50, 100, 0]
    assert [(mark.check, mark.step, mark.passed) for mark in run.checks] == [
        ("errors", 1, 2),
        ("errors", 2, 2),
        ("errors", 3, 2),
    ]
    assert (run.ending, run.news[0].kind, run.news[-1].kind) == ("Promoted", "Promoted", "Started")


def test_a_check_that_stays_good_is_told_once_and_a_bad_one_each_time() -> None:
    told = stories.live(habits=Habits(verdicts={"v2": BAD}))
    told.run_until(states.Idle)

    (run,) = sheet(told).runs
    kinds = [news.kind for news in run.news]

    assert run.ending == "RolledBack"
    assert "errors" in run.end_why
    assert (kinds.count("CheckFailed"), kinds.count("CheckSuccessful")) == (1, 0)
    assert [news.kind for news in sheet(promoted()).runs[0].news].count("CheckSuccessful") == 3


def test_only_so_many_runs_are_kept() -> None:
    told = promoted()
    for n in range(history.MOST_RUNS + 2):
        told.want(f"w{n}", stories.SPEC)
        told.run_until(states.Shifting)
        told.run_until(states.Idle)

    runs = sheet(told).runs

    assert len(runs) == history.MOST_RUNS
    assert runs[0].target == f"w{history.MOST_RUNS + 1}"


def test_an_adopted_run_is_told_from_where_it_was_adopted() -> None:
    told = stories.live()
    told.run_until(states.Analysing)
    status = told.forget()
    told.events.clear()
    told.send(messages.Adopt(status))
    told.run_until(states.Idle)

    (run,) = sheet(told).runs

    assert (run.target, run.ending) == ("v2", "Promoted")


def test_steps_say_how_far_they_are() -> None:
    told = stories.live(APPROVED)
    told.run_until(states.Analysing)

    shown = detail.of(sheet(told), NOW)

    assert [(step.weight, step.state) for step in shown.plan] == [
        (10, "here"),
        (50, "ahead"),
        (100, "ahead"),
    ]
    (check,) = shown.checks
    assert (check.name, check.good, check.phase) == ("errors", "result < 1", "Waiting")


def test_a_check_shows_the_numbers_of_its_last_finding() -> None:
    told = stories.live(APPROVED)
    told.run_until(states.Analysing)
    state = told.state()
    assert isinstance(state, states.Analysing)
    finding = Finding("errors", Phase.SUCCESSFUL, "result 0.5 %, limit 1 %", 0.5, 1.0, "%")
    told.send(messages.Judged(state.round.ticket, (finding,)))

    (check,) = detail.of(sheet(told), NOW).checks

    assert (check.value, check.limit, check.unit) == (0.5, 1.0, "%")
    assert (check.measured, check.needed) == (1, 2)


def test_the_verbs_that_are_offered_are_those_that_change_something() -> None:
    told = stories.live(APPROVED)
    told.run_until(states.Analysing)
    state = told.state()

    offered = actions.open_now(state, NOW)
    told.send(messages.Pause("ann", "lunch"))
    paused = actions.open_now(told.state(), NOW)

    assert offered == ("approve", "promote", "pause", "abort", "delete")
    assert paused == ("approve", "promote", "resume", "abort", "delete")


def test_only_versions_that_do_not_run_can_be_brought_back() -> None:
    told = promoted()
    kept = actions.revisions(told.state(), NOW)

    assert [version.revision for version in kept] == ["v1"]
    assert actions.open_now(told.state(), NOW) == ("pause", "rollback", "delete")


def test_nothing_is_offered_for_what_is_gone_or_never_was() -> None:
    told = promoted()
    told.send(messages.Delete())

    assert actions.open_now(told.state(), NOW) == ()
    assert actions.open_now(states.Unknown(), NOW) == ()
