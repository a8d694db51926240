"""The row of a rollout: what it tells at each place, and that folding it in parts is the same."""

import datetime as dt

import msgspec

from fairlead.domain.rollouts import choices, chronicle, detail, messages, rows, states
from fairlead.domain.rollouts.spec import Spec
from fairlead.domain.rollouts.strategy import Pace, Strategy
from fairlead.domain.values import Percent
from fairlead.engine import library, projections
from fairlead.engine.messages import StreamName
from tests.unit.domain.rollouts import stories, world
from tests.unit.domain.rollouts.world import BAD, CODECS, Habits, World

NOW = world.START + dt.timedelta(hours=1)
APPROVED = Spec(
    Strategy(steps=(Pace(Percent(10), approve=True), Pace(Percent(50)))), (stories.ERRORS,)
)


def views(told: World, name: str = "shop") -> list[library.EventView]:
    """A rollout's events as the store would show them, a second apart."""
    words = CODECS["rollout"].events
    found = []
    for n, event in enumerate(told.told(name), 1):
        row = words.encode(event)
        at = world.START + n * world.SECOND
        data = msgspec.json.decode(row.data)
        stream = StreamName(f"rollout/{name}")
        place = library.Place(0, n)
        found.append(library.EventView(stream, n, row.type, row.version, data, "test", at, place))
    return found


def sheet(told: World, name: str = "shop") -> rows.Sheet:
    return rows.follow(rows.BLANK, views(told, name))


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
        folded = rows.ROLLOUTS.fold(row, [event])
        row = msgspec.json.decode(msgspec.json.encode(folded))

    assert rows.read(row) == sheet(told)


def test_events_that_were_seen_already_change_nothing() -> None:
    told = views(promoted())

    once = rows.follow(rows.BLANK, told)

    assert rows.follow(once, told) == once


def test_a_row_of_another_shape_is_built_anew() -> None:
    row = rows.write(sheet(promoted()))

    assert rows.read({**row, "shape": 0}) is rows.BLANK


def test_a_deleted_rollout_has_no_row_and_a_new_one_starts_afresh() -> None:
    told = promoted()
    told.send(messages.Delete())
    row: projections.Row | None = None
    for event in views(told):
        row = rows.ROLLOUTS.fold(row, [event])
    told.want("v9", stories.SPEC)
    again = views(told)
    new = rows.ROLLOUTS.fold(row, [again[[each.type for each in again].index("Removed") + 1]])

    assert row is None
    assert new is not None
    assert new["summary"]["phase"] == "Starting"
    at_once = rows.ROLLOUTS.fold(None, again)
    assert at_once is not None
    assert not at_once["runs"]


def test_only_rollouts_have_rows() -> None:
    told = promoted()
    event = views(told)[0]
    other = library.EventView(
        StreamName("limiter/shop"), 1, event.type, 1, {}, "test", event.at, event.place
    )

    assert (rows.ROLLOUTS.key(event), rows.ROLLOUTS.key(other)) == ("rollout/shop", None)


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

    assert [(step.number, step.share) for step in run.steps] == [(1, 10), (2, 50), (3, 100)]
    assert all(step.reached and step.reached >= step.began for step in run.steps)
    assert [weight.share for weight in run.weights] == [0, 10, 50, 100, 0]
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

    assert run.ending == "TakenBack"
    assert "errors" in run.end_why
    assert (kinds.count("CheckFailed"), kinds.count("CheckSuccessful")) == (1, 0)
    assert [news.kind for news in sheet(promoted()).runs[0].news].count("CheckSuccessful") == 3


def test_only_so_many_runs_are_kept() -> None:
    told = promoted()
    for n in range(chronicle.MOST_RUNS + 2):
        told.want(f"w{n}", stories.SPEC)
        told.run_until(states.Moving)
        told.run_until(states.Idle)

    runs = sheet(told).runs

    assert len(runs) == chronicle.MOST_RUNS
    assert runs[0].target == f"w{chronicle.MOST_RUNS + 1}"


def test_an_adopted_run_is_told_from_where_it_was_adopted() -> None:
    told = stories.live()
    told.run_until(states.Watching)
    status = told.forget()
    told.events.clear()
    told.send(messages.Adopt(status))
    told.run_until(states.Idle)

    (run,) = sheet(told).runs

    assert (run.target, run.ending) == ("v2", "Promoted")


def test_steps_say_how_far_they_are() -> None:
    told = stories.live(APPROVED)
    told.run_until(states.Watching)

    shown = detail.tell(sheet(told), NOW)

    assert [(step.share, step.state) for step in shown.plan] == [
        (10, "here"),
        (50, "ahead"),
        (100, "ahead"),
    ]
    (check,) = shown.checks
    assert (check.name, check.good, check.phase) == ("errors", "result < 1", "Waiting")


def test_the_verbs_that_are_offered_are_those_that_change_something() -> None:
    told = stories.live(APPROVED)
    told.run_until(states.Watching)
    state = told.state()

    offered = choices.open_now(state, NOW)
    told.send(messages.Pause("ann", "lunch"))
    paused = choices.open_now(told.state(), NOW)

    assert offered == ("approve", "promote", "pause", "abort")
    assert paused == ("approve", "promote", "resume", "abort")


def test_only_versions_that_do_not_run_can_be_brought_back() -> None:
    told = promoted()
    kept = choices.revisions(told.state(), NOW)

    assert [version.revision for version in kept] == ["v1"]
    assert choices.open_now(told.state(), NOW) == ("pause", "rollback")


def test_nothing_is_offered_for_what_is_gone_or_never_was() -> None:
    told = promoted()
    told.send(messages.Delete())

    assert choices.open_now(told.state(), NOW) == ()
    assert choices.open_now(states.Unknown(), NOW) == ()


def test_names_are_said_without_their_uid() -> None:
    assert [rows.title(name) for name in ("shop", "shops/web", "shops/web/7f3c")] == [
        "shop",
        "shops/web",
        "shops/web",
    ]
