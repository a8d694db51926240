"""A budget: drawn by many, never above its rate, and stopped by what the API says."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from fairlead.areas.resources.domain import budget
from fairlead.areas.resources.domain.budget import BUDGET, Draw, Drawn, Pause, Paused, Purse
from fairlead.engine.testing import START, Given

HOURLY = 1200
HOUR = timedelta(hours=1)


def drawn(state: Purse, worker: str, after: timedelta) -> tuple[Purse, int]:
    decision = BUDGET.decide(state, Draw(worker, HOURLY), START + after)
    for event in decision.events:
        assert isinstance(event, Drawn)
        state = BUDGET.evolve(state, event)
    return state, state.granted.get(worker, 0) if decision.events else 0


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 60)), max_size=300))
def test_no_hour_has_more_than_its_rate_and_what_was_saved(
    draws: list[tuple[str, int]],
) -> None:
    state, at, granted = Purse(), timedelta(), []
    for worker, seconds in draws:
        at += timedelta(seconds=seconds)
        state, count = drawn(state, worker, at)
        granted.append((at, count))

    for start, _ in granted:
        inside = sum(count for when, count in granted if start <= when < start + HOUR)
        assert inside <= HOURLY + HOURLY / 12


def test_a_draw_is_a_handful_and_what_is_empty_gives_nothing() -> None:
    state = Purse()
    total = 0
    for _ in range(1000):
        state, count = drawn(state, "a", timedelta())
        assert count <= budget.handful(HOURLY) == 5
        total += count

    assert total == 100
    assert drawn(state, "a", timedelta(seconds=3))[1] == 1
    assert BUDGET.decide(state, Draw("b", HOURLY), START).events == ()


def test_what_the_api_asks_for_stops_everybody_until_then() -> None:
    until = START + timedelta(seconds=90)

    Given(BUDGET, Purse()).when(Pause(until)).then(Paused(until))
    state = BUDGET.evolve(Purse(), Paused(until))
    assert drawn(state, "a", timedelta(seconds=89))[1] == 0
    assert drawn(state, "a", timedelta(seconds=90))[1] == 5
    assert budget.next_draw(state, HOURLY, START) == timedelta(seconds=90)
    assert BUDGET.decide(state, Pause(START), START).events == ()


def test_a_worker_that_got_something_before_is_told_of_nothing() -> None:
    state = Purse(0.0, START, granted={"a": 5})

    (event,) = BUDGET.decide(state, Draw("a", HOURLY), START).events
    assert event == Drawn("a", 0, 0.0, START)


def test_there_are_not_more_workers_than_can_be_kept() -> None:
    state = Purse()
    for number in range(200):
        state, _ = drawn(state, f"w{number}", number * HOUR)

    assert len(state.granted) == 64


def test_each_subscription_and_kind_has_its_own() -> None:
    names = {
        budget.stream("a", "s", "reads"),
        budget.stream("a", "S", "reads"),
        budget.stream("a", "s", "writes"),
        budget.stream("a", "t", "reads"),
        budget.stream("b", "s", "reads"),
    }

    assert len(names) == 4
