"""What the engine asks of a store, the same of every store: two hot calls and named queries."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlead.engine import messages
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, engine, events, serves, state, tell

NOW = 1_000_000
FIRST = {"stream": 0, "seq": 0, "n": 0}
FENCE = 7
SERVES = serves()
KNOWS = '{"fan Ring": 1, "fan state Cargo": 1}'


def stream(
    number: int, name: str = "", version: int = 1, machine: str = "fan"
) -> protocol.NewStream:
    name = name or f"{machine}/{number}"
    return protocol.NewStream(number, name, machine, version, "Cargo", 1, "{}", None)


def event(number: int, seq: int = 1) -> protocol.NewEvent:
    return protocol.NewEvent(number, seq, "Loaded", 1, f'{{"seq":{seq}}}', "cause")


def effect(
    number: int, seq: int = 1, n: int = 0, owner: int | None = None, *, in_order: bool = False
) -> protocol.NewEffect:
    return protocol.NewEffect(number, seq, n, "Carry", 1, "{}", in_order, owner)


def timer(number: int, seq: int = 1, due: int = NOW, name: str = "bell") -> protocol.NewTimer:
    return protocol.NewTimer(number, name, seq, due, "Ring", 1, "{}")


def write(session: protocol.Session, **what: Any) -> None:
    """As a batch does: what it writes to, it has loaded."""
    every = {"machine": None, "before": None, "ended": None, "scope": "", "limit": 999}
    names = [row[1] for row in session.rows("list_streams", **every)]
    with session.transaction() as transaction:
        transaction.load(protocol.Needed(names))
        transaction.write(protocol.Writes(NOW, **what))


def load(session: protocol.Session, *names: str, **wanted: Any) -> protocol.Loaded:
    with session.transaction() as transaction:
        return transaction.load(protocol.Needed(list(names), **wanted))


def state_of(number: int, seen: int, version: int) -> protocol.NewState:
    return protocol.NewState(number, seen, version, "Cargo", 1, f'{{"at":{version}}}', None)


def claimed(session: protocol.Session, fence: int = FENCE, now: int = NOW, limit: int = 99) -> Any:
    rows = session.rows("claim_effects", fence=fence, serves=SERVES, now=now, limit=limit)
    return sorted((row[0], row[1], row[2]) for row in rows)


def test_what_is_written_is_loaded(session: protocol.Session) -> None:
    command = protocol.NewCommand("id", 1, "digest", 1, 2)

    write(session, streams=[stream(1)], events=[event(1), event(1, 2)], commands=[command])
    loaded = load(session, "fan/1", "fan/none", commands=["id", "none"])

    assert loaded.streams == [protocol.StreamRow(1, "fan/1", 1, "Cargo", 1, "{}", False, 0)]
    assert loaded.commands == [protocol.CommandRow("id", "digest", 1, 2)]
    assert loaded.held is None


def test_streams_found_on_the_way_are_loaded_in_the_same_transaction(
    session: protocol.Session,
) -> None:
    write(session, streams=[stream(1), stream(2)], events=[event(1), event(2)])

    for careful in (False, True):
        with session.transaction() as transaction:
            transaction.load(protocol.Needed(["fan/1"], careful=careful))
            more = transaction.more(["fan/2", "fan/3"])

        assert [row.name for row in more] == ["fan/2"]


def test_a_transaction_without_a_write_leaves_no_trace(session: protocol.Session) -> None:
    with session.transaction() as transaction:
        transaction.load(protocol.Needed(["fan/1"]))
        transaction.number(1)

    assert load(session, "fan/1").streams == []


def test_a_transaction_that_fails_leaves_no_trace_and_the_session_goes_on(
    session: protocol.Session,
) -> None:
    def fail() -> None:
        with session.transaction() as transaction:
            transaction.load(protocol.Needed(["fan/1"], careful=True))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    write(session, streams=[stream(1)], events=[event(1)])

    assert len(load(session, "fan/1").streams) == 1


def test_numbers_for_new_streams_are_never_given_twice(
    session: protocol.Session, rival: protocol.Session
) -> None:
    given: list[int] = []
    for each in (session, rival, session):
        with each.transaction() as transaction:
            transaction.load(protocol.Needed([]))
            numbers = list(transaction.number(2))
            rows = [stream(number) for number in numbers]
            transaction.write(protocol.Writes(NOW, streams=rows))
        given += numbers

    assert len(set(given)) == 6


def test_many_numbers_are_given_at_once(session: protocol.Session) -> None:
    with session.transaction() as transaction:
        transaction.load(protocol.Needed([]))
        numbers = [*transaction.number(2500), *transaction.number(1)]

    assert len(set(numbers)) == 2501


def test_a_state_decided_from_an_old_version_is_lost_with_all_that_came_along(
    session: protocol.Session,
) -> None:
    write(session, streams=[stream(1), stream(2)], events=[event(1), event(2)])

    with pytest.raises(protocol.Lost):
        write(
            session,
            states=[state_of(2, 1, 2), state_of(1, 5, 6)],
            events=[event(2, 2), event(1, 6)],
            timers=[timer(2)],
        )

    assert [row.version for row in load(session, "fan/1", "fan/2").streams] == [1, 1]
    assert session.rows("next_timer") == [(None,)]


@pytest.mark.parametrize(
    "again",
    [
        {"streams": [stream(9, "fan/1")]},
        {"events": [event(1)]},
        {"commands": [protocol.NewCommand("id", 1, "other", 1, 1)]},
        {"effects": [effect(1)]},
    ],
    ids=["stream", "event", "command", "effect"],
)
def test_what_is_there_already_is_lost(session: protocol.Session, again: dict[str, Any]) -> None:
    command = protocol.NewCommand("id", 1, "digest", 1, 1)
    write(session, streams=[stream(1)], events=[event(1)], commands=[command], effects=[effect(1)])

    with pytest.raises(protocol.Lost):
        write(session, **again)


@pytest.mark.parametrize(
    "what",
    [
        {"settled": [messages.Hold(1, 1, 0, FENCE + 1)]},
        {"settled": [messages.Hold(1, 1, 5, FENCE)]},
        {"fired": [messages.TimerKey(1, "bell", 2)]},
        {"fired": [messages.TimerKey(1, "other", 1)]},
    ],
)
def test_settling_what_is_not_held_or_does_not_stand_is_lost(
    session: protocol.Session, what: dict[str, Any]
) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, owner=FENCE)], timers=[timer(1)])

    with pytest.raises(protocol.Lost):
        write(session, events=[event(1)], **what)

    assert session.rows("stream_events", name="fan/1", after=0, limit=9) == []


def test_a_careful_load_says_what_still_stands(session: protocol.Session) -> None:
    mine, others = messages.Hold(1, 1, 0, FENCE), messages.Hold(1, 1, 1, FENCE)
    stands, replaced = messages.TimerKey(1, "bell", 1), messages.TimerKey(1, "old", 1)
    write(
        session,
        streams=[stream(1)],
        effects=[effect(1, owner=FENCE), effect(1, n=1, owner=FENCE + 1)],
        timers=[timer(1), timer(1, seq=2, name="old")],
    )

    loaded = load(session, "fan/1", settles=[mine, others], fires=[stands, replaced], careful=True)

    assert loaded.held == frozenset({mine, stands})


def test_a_careful_load_of_nothing_is_well(session: protocol.Session) -> None:
    loaded = load(session, careful=True)

    assert [*loaded.streams, *loaded.commands, *(loaded.held or ())] == []
    assert loaded.held is not None


def test_effects_are_settled_postponed_and_claimed_again(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], effects=[effect(1, n=n, owner=FENCE) for n in range(3)])
    later = protocol.Postponement(1, 1, 1, FENCE, NOW + 50, None, "no road")
    dead = protocol.Postponement(1, 1, 2, FENCE, NOW, NOW, "closed")
    stale = protocol.Postponement(1, 1, 1, FENCE + 1, NOW, NOW, "not mine to say")

    write(session, settled=[messages.Hold(1, 1, 0, FENCE)], postponed=[later, dead, stale])

    rows = session.rows("list_effects", dead=None, name=None, **FIRST, limit=9)
    assert [(row[3], row[7], row[8], row[9], row[10], row[11]) for row in rows] == [
        (1, 1, NOW + 50, None, None, "no road"),
        (2, 1, NOW, None, NOW, "closed"),
    ]
    assert claimed(session) == []
    assert session.rows("next_effect", serves=SERVES) == [(NOW + 50,)]
    assert claimed(session, now=NOW + 50) == [(1, 1, 1)]


def test_effects_are_listed_page_by_page(session: protocol.Session) -> None:
    streams, both = [stream(1), stream(2)], [(1, 0), (1, 1), (2, 0)]
    write(session, streams=streams, effects=[effect(number, n=n) for number, n in both])

    page = session.rows("list_effects", dead=None, name=None, **FIRST, limit=2)
    last = dict(zip(("stream", "seq", "n"), page[-1][1:4], strict=True))
    rest = session.rows("list_effects", dead=None, name=None, **last, limit=2)

    assert [row[1:4] for row in (*page, *rest)] == [(1, 1, 0), (1, 1, 1), (2, 1, 0)]
    assert len(rest) == 1


def test_a_claim_skips_the_held_the_dead_the_early_and_what_is_over_the_limit(
    session: protocol.Session,
) -> None:
    write(
        session,
        streams=[stream(1)],
        effects=[effect(1, n=n, owner=FENCE if n == 0 else None) for n in range(4)],
    )
    claimed(session, fence=8, limit=1)
    write(session, postponed=[protocol.Postponement(1, 1, 1, 8, NOW, NOW, "dead")])

    assert claimed(session, fence=9, now=NOW - 1) == []
    assert claimed(session, fence=9, limit=1) == [(1, 1, 2)]
    assert claimed(session, fence=9) == [(1, 1, 3)]
    assert claimed(session, fence=10) == []


def test_a_claim_tells_all_that_performing_takes(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], effects=[effect(1)])

    rows = session.rows("claim_effects", fence=FENCE, serves=SERVES, now=NOW, limit=9)

    assert rows == [(1, 1, 0, "Carry", 1, "{}", 0, "", "fan/1", "")]


def test_in_an_ordered_lane_only_the_first_can_be_claimed(session: protocol.Session) -> None:
    lane = [effect(1, seq, n, in_order=True) for seq in (1, 2) for n in (0, 1)]
    write(session, streams=[stream(1, machine="lane"), stream(2)], effects=[*lane, effect(2)])

    assert claimed(session) == [(1, 1, 0), (2, 1, 0)]
    assert claimed(session) == []
    write(session, settled=[messages.Hold(1, 1, 0, FENCE)])
    assert claimed(session) == [(1, 1, 1)]
    assert load(session, "lane/1").streams[0].pending == 2


def test_a_dead_effect_blocks_its_lane_until_a_person_decides(session: protocol.Session) -> None:
    lane = [effect(1, n=n, in_order=True) for n in range(2)]
    write(session, streams=[stream(1, machine="lane")], effects=lane)
    claimed(session)
    write(session, postponed=[protocol.Postponement(1, 1, 0, FENCE, NOW, NOW, "dead")])
    key = {"stream": 1, "seq": 1, "n": 0}

    assert claimed(session) == []
    assert session.rows("revive_effect", now=NOW, **key) == [(1,)]
    assert session.rows("revive_effect", now=NOW, **key) == []
    assert session.rows("discard_effect", **key) == []
    assert claimed(session) == [(1, 1, 0)]


def test_timers_are_replaced_cancelled_fired_and_ended(session: protocol.Session) -> None:
    write(
        session,
        streams=[stream(1), stream(2)],
        timers=[timer(1), timer(1, name="gone"), timer(2), timer(2, name="also")],
    )

    write(session, timers=[timer(1, seq=2, due=NOW + 5)], cancelled=[(1, "gone"), (1, "none")])
    write(session, ended=[2], events=[event(2)])

    assert session.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW, limit=9) == []
    rows = session.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW + 5, limit=9)
    assert rows == [(1, "bell", 2, "Ring", 1, "{}", NOW + 5, 0, "fan/1")]
    write(session, fired=[messages.TimerKey(1, "bell", 2)], timers=[timer(1, seq=3, due=NOW + 9)])
    assert session.rows("next_timer") == [(NOW + 9,)]


def test_setting_a_timer_again_frees_it_from_whoever_claimed_it(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], timers=[timer(1)])
    session.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW, limit=9)

    write(session, timers=[timer(1, seq=2)])

    assert len(session.rows("claim_timers", fence=FENCE + 1, knows=KNOWS, now=NOW, limit=9)) == 1


def test_a_refused_timer_comes_again_unless_it_was_set_anew(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], timers=[timer(1)])
    session.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW, limit=9)

    late = {"dead": None, "error": "no", "attempts": 1}
    session.rows("postpone_timer", stream=1, name="bell", seq=99, due=1, **late)
    assert session.rows("next_timer") == [(None,)]
    session.rows("postpone_timer", stream=1, name="bell", seq=1, due=NOW + 7, **late)

    (row,) = session.rows("claim_timers", fence=FENCE, knows=KNOWS, now=NOW + 7, limit=9)
    assert row[7] == 1


def test_a_script_is_one_commit_and_undone_whole_where_its_first_step_hits_nothing(
    session: protocol.Session,
) -> None:
    put = ("put_fact", {"name": "a", "value": "b"})

    with pytest.raises(protocol.Lost):
        session.script([("end_worker", {"fence": 99, "now": 1}), put], first_must_hit=True)
    assert session.rows("get_fact", name="a") == []
    assert session.script([("end_worker", {"fence": 99, "now": 1}), put]) == [0, 1]
    assert session.rows("get_fact", name="a") == [("b",)]


def test_a_script_that_fails_in_the_middle_leaves_nothing(session: protocol.Session) -> None:
    token = {"id": "t", "name": "n", "role": "viewer", "scope": "", "digest": "d", "now": 1}
    token = {**token, "expires": None}

    with pytest.raises(protocol.Lost):
        session.script([("insert_token", token), ("insert_token", token)])

    assert session.rows("list_tokens") == []


def test_a_fact_is_set_once(session: protocol.Session) -> None:
    session.rows("put_fact", name="store_id", value="first")
    session.rows("put_fact", name="store_id", value="second")

    assert session.rows("get_fact", name="store_id") == [("first",)]


def test_tokens_are_kept_listed_and_revoked_once(session: protocol.Session) -> None:
    given = {"name": "n", "role": "viewer", "scope": "payments", "digest": "d"}
    for number in (2, 1):
        times = {"now": number, "expires": 9 if number == 1 else None}
        session.rows("insert_token", id=f"t{number}", **given, **times)

    assert [row[0] for row in session.rows("list_tokens")] == ["t1", "t2"]
    assert session.rows("get_token", id="t1") == [
        ("t1", "n", "viewer", "payments", "d", 1, 9, None)
    ]
    assert session.rows("revoke_token", id="t1", now=5) == [("t1",)]
    assert session.rows("revoke_token", id="t1", now=6) == []
    assert session.rows("get_token", id="t1")[0][7] == 5


def test_a_bookmark_moves_only_from_where_it_was_read(
    session: protocol.Session, rival: protocol.Session
) -> None:
    session.rows("start_projection", name="p", version=1)
    step = {"name": "p", "version": 1, "tx": 0, "position": 5, "seen_tx": 0, "seen_position": -1}
    put = ("put_projected", {"name": "p", "rows": '[["k","{}"]]'})

    session.script([("advance_projection", step), put], first_must_hit=True)
    with pytest.raises(protocol.Lost):
        rival.script([("advance_projection", step), put], first_must_hit=True)
    moved = {**step, "version": 2, "seen_position": 5}
    with pytest.raises(protocol.Lost):
        rival.script([("advance_projection", moved), put], first_must_hit=True)

    assert session.rows("get_projection", name="p") == [(1, 0, 5)]


def test_projected_rows_are_put_replaced_and_dropped(session: protocol.Session) -> None:
    session.rows("put_projected", name="p", rows='[["a","1"],["b","2"]]')
    session.rows("put_projected", name="p", rows='[["b","3"]]')
    session.rows("put_projected", name="q", rows='[["a","9"]]')
    session.rows("drop_projected", name="p", keys=["a", "none"])

    assert session.rows("list_projected", name="p", after="", limit=9) == [("b", "3")]
    assert session.rows("get_projected", name="p", keys=["a", "b"]) == [("b", "3")]
    session.rows("clear_projected", name="p")
    assert session.rows("list_projected", name="q", after="", limit=9) == [("a", "9")]


def test_events_come_in_order_and_in_pages(session: protocol.Session) -> None:
    write(session, streams=[stream(1)], events=[event(1, seq) for seq in (1, 2, 3)])

    rows = session.rows("stream_events", name="fan/1", after=1, limit=1)

    assert [(row[0], row[1], row[2], row[5], row[6]) for row in rows] == [
        ("fan/1", 2, "Loaded", "cause", NOW)
    ]


def test_counts_tell_how_much_of_everything_there_is(session: protocol.Session) -> None:
    done = changed(stream(2), ended_at=NOW)
    write(session, streams=[stream(1), done], effects=[effect(1, owner=FENCE)], timers=[timer(1)])
    write(session, postponed=[protocol.Postponement(1, 1, 0, FENCE, NOW, NOW, "dead")])

    assert session.rows("count_rows") == [(1, 1, 1, 1)]


def changed(row: protocol.NewStream, **changes: Any) -> protocol.NewStream:
    fields: Sequence[str] = row.__struct_fields__
    return protocol.NewStream(**{name: getattr(row, name) for name in fields} | changes)


async def test_a_stream_of_a_hundred_thousand_events_goes_on_from_its_state_row(
    home: Home, wall: HandWoundClock
) -> None:
    """The events are even gone: had anybody read them, the sum would not be what it is."""
    async with engine(home.store(), wall, Setup(perform=False)).running() as running:
        await tell(running, "counter/a", machines.Add(1))
        home.sql("DELETE FROM events")
        home.sql("""UPDATE streams SET version = 100000, state = '{"total":50}'""")

        receipt = await tell(running, "counter/a", machines.Add(1))

        assert (receipt.first, receipt.last) == (100_001, 100_001)
        assert await state(running, "counter/a") == {"total": 51}
        assert await events(running, "counter/a") == ["Added"]


def test_an_attribute_is_put_replaced_and_dropped(session: protocol.Session) -> None:
    def put(value: str | None) -> list[str]:
        attribute = protocol.NewAttribute(1, "fan", "phase", value)
        write(session, events=[event(1, next(numbers))], attributes=[attribute])
        asked = {"machine": "fan", "name": "phase", "low": "", "high": "z", "most": 9}
        found = [
            each
            for each in ("a", "b")
            if session.rows("count_values", **{**asked, "low": each, "high": each}) != [(0,)]
        ]
        assert session.rows("count_values", **asked) == [(len(found),)]
        return found

    numbers = iter(range(2, 9))
    write(session, streams=[stream(1)])

    assert [put("a"), put("b"), put(None)] == [["a"], ["b"], []]


def test_every_field_of_the_writes_is_written_by_some_test() -> None:
    files = Path(__file__).parent.glob("test_store*.py")
    text = "".join(file.read_text() for file in files)
    fields = [field.name for field in dataclasses.fields(protocol.Writes) if field.name != "now"]

    assert [name for name in fields if f"{name}=[" not in text] == []
