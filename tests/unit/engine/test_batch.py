"""Many decisions in one transaction, in memory: what is written, and what a failure leaves."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fairlead import errors
from fairlead.engine import batch, clock, machine, messages
from fairlead.engine.store import protocol
from fairlead.engine.testing import START
from tests import machines
from tests.engines import name

FENCE = 7
ROOM = {("", machines.Carry): 99, ("", machines.Nothing): 99}
REGISTRY = batch.MachineRegistry(machine.Machines(machines.ALL))


def taken(
    rows: Sequence[protocol.StreamRow] = (),
    commands: Sequence[protocol.CommandRow] = (),
    held: frozenset[messages.Hold | messages.TimerKey] | None = None,
    fence: int | None = FENCE,
) -> batch.Batch:
    loaded = protocol.Loaded(rows, commands, held)
    identity = batch.Identity(START, fence, ROOM)
    made = batch.Batch(REGISTRY, identity, loaded, lambda count: range(100, 100 + count))
    made.know([row.name for row in rows], rows)
    return made


def fresh(*streams: str, fence: int | None = FENCE) -> batch.Batch:
    made = taken(fence=fence)
    made.know(streams, ())
    return made


def told(
    stream: str,
    command: object,
    id_: str = "id",
    settles: messages.Hold | messages.TimerKey | None = None,
    *,
    remember: bool = False,
) -> messages.Submission:
    return messages.Submission(
        name(stream), command, messages.CommandId(id_), settles, remember=remember
    )


def row(stream: str, version: int, state: Any, pending: int = 0) -> protocol.StreamRow:
    registered = REGISTRY.of(stream).codec.states.encode(state)
    return protocol.StreamRow(
        1, stream, version, registered.type, registered.version, registered.data, False, pending
    )


def contents(made: batch.Batch) -> dict[str, Any]:
    """Everything a batch would write; a copy to compare with."""
    writes = made.finish()
    return {field: list(getattr(writes, field)) for field in writes.__slots__ if field != "now"}


EMPTY = contents(fresh())


def test_a_new_stream_is_written_whole() -> None:
    made = fresh("counter/a")

    receipt = made.take(told("counter/a", machines.Add(3), "first"))

    writes = made.finish()
    assert receipt == messages.Receipt(name("counter/a"), 1, 1)
    assert writes.streams == [
        protocol.NewStream(100, "counter/a", "counter", 1, "Count", 1, '{"total":3}', None)
    ]
    assert writes.events == [
        protocol.NewEvent(100, 1, "Added", 1, '{"number":3,"note":""}', "first")
    ]
    assert [(c.id, c.stream, c.first, c.last) for c in writes.commands] == [("first", 100, 1, 1)]
    assert writes.now == clock.to_millis(START)


def test_a_known_stream_moves_on_from_the_version_it_was_read_at() -> None:
    made = taken([row("counter/a", 4, machines.Count(10))])

    receipts = [made.take(told("counter/a", machines.Add(1), f"id {n}")) for n in range(2)]

    writes = made.finish()
    assert [(receipt.first, receipt.last) for receipt in receipts] == [(5, 5), (6, 6)]
    assert [(s.seen, s.version, s.state) for s in writes.states] == [(4, 6, '{"total":12}')]
    assert writes.streams == []


def test_a_decision_that_changes_nothing_writes_nothing() -> None:
    made = fresh("counter/a")

    receipt = made.take(told("counter/a", machines.Add(0)))

    assert (receipt.first, receipt.last, receipt.events) == (1, 0, 0)
    assert contents(made) == EMPTY
    assert not made.finish()


def test_the_id_of_a_command_from_outside_is_kept_though_nothing_changes() -> None:
    known, unborn = fresh(), fresh("counter/b")
    known.know(["counter/a"], [row("counter/a", 4, machines.Count(10))])
    told_twice = [
        (known, told("counter/a", machines.Add(0), remember=True), 1),
        (unborn, told("counter/b", machines.Add(0), remember=True), protocol.NO_STREAM),
    ]

    for made, submission, stream in told_twice:
        first = made.take(submission)
        again = made.take(submission)

        assert (first.events, again, again.duplicate) == (0, first, True)
        writes = made.finish()
        assert [(each.id, each.stream) for each in writes.commands] == [("id", stream)]
        assert (writes.streams, writes.states, bool(writes)) == ([], [], True)


def test_a_command_that_was_answered_is_answered_though_its_stream_cannot_be_read() -> None:
    made = fresh("counter/a")
    first = made.take(told("counter/a", machines.Add(3)))
    (command,) = made.finish().commands
    known = protocol.CommandRow(command.id, command.digest, command.first, command.last)
    newer = row("counter/a", 1, machines.Count(3))._replace(state_version=2)
    later = taken([newer], [known])

    assert later.take(told("counter/a", machines.Add(3))) == first
    with pytest.raises(errors.Newer, match="cannot read counter state Count version 2"):
        later.take(told("counter/a", machines.Add(3), "other"))


def test_the_same_command_in_other_words_is_the_same_command() -> None:
    commands = REGISTRY.of("counter/a").codec.commands
    said = [{"number": 3}, {"note": "", "number": 3}, {"number": 3, "note": ""}]
    made = fresh("counter/a")

    receipts = [made.take(told("counter/a", commands.parse("Add", each))) for each in said]

    assert [receipt.duplicate for receipt in receipts] == [False, True, True]


def test_the_same_command_again_gets_the_same_answer_within_a_batch_and_from_the_store() -> None:
    made = fresh("counter/a")
    first = made.take(told("counter/a", machines.Add(3)))
    (command,) = made.finish().commands
    known = protocol.CommandRow(command.id, command.digest, command.first, command.last)
    later = taken([row("counter/a", 1, machines.Count(3))], [known])

    again = [made.take(told("counter/a", machines.Add(3))) for made in (made, later)]

    assert again == [first, first]
    assert all(receipt.duplicate for receipt in again)
    assert contents(later) == EMPTY


@pytest.mark.parametrize(
    ("stream", "command"), [("counter/a", machines.Add(4)), ("counter/b", machines.Add(3))]
)
def test_the_same_id_for_another_command_is_a_conflict(stream: str, command: object) -> None:
    made = fresh("counter/a", "counter/b")
    made.take(told("counter/a", machines.Add(3)))
    before = len(made.writes.events)

    with pytest.raises(errors.Conflict, match="command id was used for another command: id"):
        made.take(told(stream, command))

    assert len(made.writes.events) == before


@pytest.mark.parametrize(
    ("how", "raised"),
    [
        ("raise", ZeroDivisionError),
        ("spoil", ValueError),
        ("stranger", AssertionError),
        ("silent", errors.Rejected),
        ("refuse", errors.Rejected),
    ],
)
def test_a_machine_that_misbehaves_leaves_no_mark(how: str, raised: type[Exception]) -> None:
    made = fresh("counter/a", "counter/b")
    made.take(told("counter/b", machines.Add(1), "good"))

    with pytest.raises(raised):
        made.take(told("counter/a", machines.Misbehave(how), "bad"))
    made.take(told("counter/a", machines.Add(5), "bad"))

    writes = made.finish()
    assert [event.type for event in writes.events] == ["Added", "Added"]
    assert [(s.name, s.version, s.state) for s in writes.streams] == [
        ("counter/a", 1, '{"total":5}'),
        ("counter/b", 1, '{"total":1}'),
    ]


def test_acting_without_an_event_is_refused_by_name() -> None:
    with pytest.raises(errors.Rejected, match="counter acts without an event: Misbehave"):
        fresh("counter/a").take(told("counter/a", machines.Misbehave("silent")))


def call(times: int, fail_at: int = 1_000_000) -> machines.Call:
    return machines.Call(name("echo/a"), name("echo/b"), times, fail_at)


def test_commands_between_machines_land_in_the_same_submission() -> None:
    made = fresh("echo/a", "echo/b")

    receipt = made.take(told("echo/a", call(3)))

    writes = made.finish()
    assert [(e.stream, e.seq, e.cause) for e in writes.events] == [
        (100, 1, "id"), (101, 1, "id"), (100, 2, "id"), (101, 2, "id"),
    ]  # fmt: skip
    assert (receipt.first, receipt.last) == (1, 1)
    assert len(writes.effects) == len(made.fresh) == 4
    assert [(timer.stream, timer.seq) for timer in writes.timers] == [(100, 2), (101, 2)]
    assert len(writes.commands) == 1


def test_a_submission_that_fails_late_takes_back_all_it_touched() -> None:
    made = fresh("echo/a", "echo/b")
    made.take(told("echo/b", call(0), "before"))
    spared = json.dumps([len(made.writes.events), len(made.fresh)])

    with pytest.raises(errors.Rejected, match="dropped the ball"):
        made.take(told("echo/a", call(5, fail_at=1)))

    assert json.dumps([len(made.writes.events), len(made.fresh)]) == spared
    writes = made.finish()
    assert [stream.name for stream in writes.streams] == ["echo/b"]
    assert [(timer.stream, timer.seq) for timer in writes.timers] == [(101, 1)]
    assert [(effect.stream, effect.seq) for effect in writes.effects] == [(101, 1)]
    assert [command.id for command in writes.commands] == ["before"]


def test_a_failed_submission_does_not_use_up_what_it_would_have_settled() -> None:
    hold = messages.Hold(1, 1, 0, FENCE)
    made = taken([row("fan/a", 1, machines.Cargo(("x",)))])

    with pytest.raises(errors.Rejected):
        made.take(told("fan/a", machines.Unload("refused"), settles=hold))
    made.take(told("fan/a", machines.Unload("x"), settles=hold))

    assert made.finish().settled == [hold]


def test_two_machines_that_never_stop_sending_are_stopped() -> None:
    made = fresh("echo/a", "echo/b")

    with pytest.raises(errors.Rejected, match="more than 10000 commands from one: id"):
        made.take(told("echo/a", call(-1)))

    assert contents(made) == EMPTY


def test_a_stream_that_a_machine_sends_to_is_asked_for() -> None:
    made = fresh("echo/a")

    with pytest.raises(batch.Unloaded) as asked:
        made.take(told("echo/a", call(1)))
    made.know(asked.value.streams, ())
    made.take(told("echo/a", call(1)))

    assert asked.value.streams == ["echo/b"]
    assert len(made.finish().events) == 2


def test_a_fresh_effect_is_held_from_birth() -> None:
    made = fresh("fan/a")

    made.take(told("fan/a", machines.Load(("x", "y"))))

    assert [(e.seq, e.n, e.owner) for e in made.finish().effects] == [(1, 0, FENCE), (1, 1, FENCE)]
    assert [asked.effect for asked in made.fresh] == [machines.Carry("x"), machines.Carry("y")]
    assert made.fresh[1].hold == messages.Hold(100, 1, 1, FENCE)


def test_without_a_fence_effects_are_left_for_others() -> None:
    made = fresh("fan/a", fence=None)

    made.take(told("fan/a", machines.Load(("x",))))

    assert [effect.owner for effect in made.finish().effects] == [None]
    assert made.fresh == []


def test_in_an_ordered_lane_only_the_first_effect_is_held() -> None:
    made = fresh("lane/a")

    made.take(told("lane/a", machines.Load(("x", "y")), "1"))
    made.take(told("lane/a", machines.Load(("z",)), "2"))

    assert [effect.owner for effect in made.finish().effects] == [FENCE, None, None]
    assert [asked.effect for asked in made.fresh] == [machines.Carry("x")]


def test_an_effect_behind_one_that_waits_in_the_store_is_not_held() -> None:
    made = taken([row("lane/a", 1, machines.Cargo(("x",)), pending=1)])

    made.take(told("lane/a", machines.Load(("y",))))

    assert made.fresh == []


def test_settling_the_last_of_a_lane_lets_the_next_be_held_at_once() -> None:
    made = taken([row("lane/a", 1, machines.Cargo(("x",)), pending=1)])

    made.take(told("lane/a", machines.Unload("x"), "1", messages.Hold(1, 1, 0, FENCE)))
    made.take(told("lane/a", machines.Load(("y",)), "2"))

    assert [asked.effect for asked in made.fresh] == [machines.Carry("y")]


def test_an_answer_settles_its_effect_and_leaves_no_command_row() -> None:
    hold = messages.Hold(1, 1, 0, FENCE)
    made = taken([row("fan/a", 1, machines.Cargo(("x", "y")))])

    made.take(told("fan/a", machines.Unload("x"), settles=hold))

    writes = made.finish()
    assert (writes.settled, writes.commands) == ([hold], [])


def test_an_answer_that_changes_nothing_still_settles() -> None:
    hold = messages.Hold(1, 1, 0, FENCE)
    made = taken([row("fan/a", 1, machines.Cargo(("x",)))])

    receipt = made.take(told("fan/a", machines.Unload("unknown"), settles=hold))

    assert receipt.events == 0
    assert made.finish().settled == [hold]
    assert made.writes


def test_an_effect_is_settled_once_whether_answered_or_not() -> None:
    hold = messages.Hold(1, 1, 0, FENCE)
    made = taken([row("fan/a", 1, machines.Cargo(("x",)))])
    made.settle(hold)

    with pytest.raises(batch.Stale):
        made.settle(hold)
    with pytest.raises(batch.Stale):
        made.take(told("fan/a", machines.Unload("x"), settles=hold))

    writes = made.finish()
    assert (writes.settled, writes.events) == ([hold], [])


@pytest.mark.parametrize(
    "settles", [messages.Hold(1, 1, 0, FENCE), messages.TimerKey(1, "bell", 1)]
)
def test_after_a_careful_look_only_what_still_stands_is_settled(
    settles: messages.Hold | messages.TimerKey,
) -> None:
    rows = [row("fan/a", 1, machines.Cargo(("x",)))]
    lost, kept = taken(rows, held=frozenset()), taken(rows, held=frozenset([settles]))

    with pytest.raises(batch.Stale):
        lost.take(told("fan/a", machines.Unload("x"), settles=settles))
    kept.take(told("fan/a", machines.Unload("x"), settles=settles))

    assert contents(lost) == EMPTY
    assert len(kept.finish().events) == 1


def test_of_several_words_about_one_timer_the_last_counts() -> None:
    made = fresh("bell/a")
    soon, later = START + timedelta(minutes=1), START + timedelta(minutes=2)

    for number, command in enumerate(
        [machines.SetAlarm(soon), machines.Silence(), machines.SetAlarm(later)]
    ):
        made.take(told("bell/a", command, str(number)))

    writes = made.finish()
    assert [(t.name, t.seq, t.due_at) for t in writes.timers] == [
        ("bell", 3, clock.to_millis(later))
    ]
    assert writes.cancelled == []


def test_a_timer_is_never_due_before_the_moment_asked_for() -> None:
    made = fresh("bell/a")
    due = START + timedelta(microseconds=1)

    made.take(told("bell/a", machines.SetAlarm(due)))

    (timer,) = made.finish().timers
    assert clock.from_millis(timer.due_at) >= due


def test_a_stream_ends_once_and_says_so() -> None:
    made = fresh("counter/a", "counter/b")
    made.take(told("counter/a", machines.Add(100), "1"))
    made.take(told("counter/a", machines.Add(1), "2"))

    writes = made.finish()

    assert writes.ended == [100]
    assert [stream.ended_at for stream in writes.streams] == [writes.now]


def test_a_corrupt_stream_fails_for_those_who_ask_for_it_only() -> None:
    broken = row("counter/a", 1, machines.Count(1))._replace(state='{"total":"many"}')
    sound = row("counter/b", 1, machines.Count(1))._replace(id=2)
    made = taken([broken, sound])

    with pytest.raises(errors.Corrupt, match="cannot read counter state Count"):
        made.take(told("counter/a", machines.Add(1), "1"))
    made.take(told("counter/b", machines.Add(1), "2"))

    assert [state.id for state in made.finish().states] == [2]


@pytest.mark.parametrize("fault", [RecursionError, AssertionError, ZeroDivisionError])
def test_a_stream_whose_upcaster_breaks_leaves_the_batch_whole(fault: type[Exception]) -> None:
    def lift(_: dict[str, Any]) -> dict[str, Any]:
        raise fault

    grown = replace(machines.COUNTER, versions={machines.Count: 2}, upcasters={("Count", 1): lift})
    registry = batch.MachineRegistry(machine.Machines([grown]))
    old, today = row("counter/a", 1, machines.Count(1)), row("counter/b", 1, machines.Count(2))
    made = batch.Batch(registry, batch.Identity(START), protocol.Loaded((), ()), lambda _: [])

    made.know((), [old, today._replace(id=2, state_version=2)])

    with pytest.raises(errors.Corrupt, match="cannot read counter state Count version 1"):
        made.take(told("counter/a", machines.Add(1), "1"))
    assert made.take(told("counter/b", machines.Add(1), "2")).events == 1


def test_a_stream_of_no_machine_is_refused_by_name() -> None:
    with pytest.raises(errors.NotFound, match="no such machine: gadget"):
        fresh("gadget/a").take(told("gadget/a", machines.Add(1)))


def test_a_command_of_another_machine_is_refused() -> None:
    with pytest.raises(errors.Rejected, match="not a counter command: Load"):
        fresh("counter/a").take(told("counter/a", machines.Load(())))


def test_the_registry_knows_who_asks_for_order() -> None:
    assert tuple(REGISTRY.ordered()) == machines.ORDERED


def test_a_command_that_names_another_stream_is_refused_and_writes_nothing() -> None:
    def addressed(stream: messages.StreamName, command: object) -> None:
        if stream != "counter/a":
            raise errors.Rejected(f"not for: {stream}", hint="send it there")

    counter = replace(machines.COUNTER, addressed=addressed)
    made = batch.Batch(
        batch.MachineRegistry(machine.Machines([counter])),
        batch.Identity(START, FENCE, ROOM),
        protocol.Loaded((), (), None),
        lambda count: range(100, 100 + count),
    )
    made.know(["counter/a", "counter/b"], ())

    made.take(told("counter/a", machines.Add(1), "first"))
    with pytest.raises(errors.Rejected, match="not for: counter/b"):
        made.take(told("counter/b", machines.Add(1), "second"))

    assert len(made.writes.events) == 1
