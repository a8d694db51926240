"""From submission to commit: together where it can be, and each answered for itself."""

import asyncio
import secrets

import pytest

from fairlead import errors
from fairlead.engine import messages, runner
from fairlead.engine.store import protocol
from fairlead.engine.testing import HandWoundClock
from tests import machines
from tests.engines import Home, Setup, engine, events, name, state, tell
from tests.tampered import TamperedStore, Tampering, once

SUBMITTER = Setup(perform=False)


async def test_submissions_that_arrive_together_share_a_commit(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        receipts = await asyncio.gather(
            *(tell(running, f"counter/{number}", machines.Add(1)) for number in range(200))
        )

        assert all(receipt.events == 1 for receipt in receipts)
        assert running.counts.events == 200
        assert running.counts.commits < 20


async def test_one_stream_takes_its_commands_in_the_order_of_submission(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        receipts = await asyncio.gather(
            *(tell(running, "counter/a", machines.Add(1)) for _ in range(50))
        )

    assert [receipt.first for receipt in receipts] == list(range(1, 51))


async def test_an_observation_that_changes_nothing_costs_no_commit(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        observed = messages.command_id("observed")
        receipt = await running.observe(name("counter/a"), machines.Add(0), observed)

        assert receipt.events == 0
        assert running.counts.commits == 0
        with pytest.raises(errors.NotFound):
            await state(running, "counter/a")


async def test_the_same_command_is_taken_once_however_often_and_wherever_it_is_sent(
    home: Home, wall: HandWoundClock
) -> None:
    async with (
        engine(home.store(), wall, SUBMITTER).running() as one,
        engine(home.store(), wall, SUBMITTER).running() as two,
    ):
        receipts = await asyncio.gather(
            *(tell(each, "counter/a", machines.Add(7), "once") for each in (one, two) * 10)
        )

        assert set(receipts) == {messages.Receipt(name("counter/a"), 1, 1)}
        assert sum(not receipt.duplicate for receipt in receipts) == 1
        assert await state(one, "counter/a") == {"total": 7}
        with pytest.raises(errors.Conflict):
            await tell(two, "counter/a", machines.Add(8), "once")


async def test_two_processes_on_one_stream_lose_no_update(home: Home, wall: HandWoundClock) -> None:
    async with (
        engine(home.store(), wall, SUBMITTER).running() as one,
        engine(home.store(), wall, SUBMITTER).running() as two,
    ):
        await asyncio.gather(
            *(tell(each, "counter/a", machines.Add(1)) for each in (one, two) * 40)
        )

        assert await state(one, "counter/a") == {"total": 80}
        assert await events(two, "counter/a") == ["Added"] * 80


async def test_two_processes_whose_machines_send_to_each_other_both_get_through(
    home: Home, wall: HandWoundClock
) -> None:
    """Each locks its own stream and needs the other's: waiting there would never end."""
    there = machines.Call(name("echo/a"), name("echo/b"), 3)
    back = machines.Call(name("echo/b"), name("echo/a"), 3)

    async with (
        engine(home.store(), wall, SUBMITTER).running() as one,
        engine(home.store(), wall, SUBMITTER).running() as two,
    ):
        for _ in range(15):
            await asyncio.gather(tell(one, "echo/a", there), tell(two, "echo/b", back))

        assert await state(one, "echo/a") == {"calls": 60}
        assert await state(one, "echo/b") == {"calls": 60}


@pytest.mark.parametrize("how", ["raise", "spoil", "silent", "refuse"])
async def test_a_poisonous_command_harms_no_other_in_its_batch(
    store: protocol.Store, wall: HandWoundClock, how: str
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        outcomes = await asyncio.gather(
            *(tell(running, f"counter/{number}", machines.Add(1)) for number in range(5)),
            tell(running, "counter/1", machines.Misbehave(how)),
            *(tell(running, f"counter/{number}", machines.Add(1)) for number in range(5)),
            return_exceptions=True,
        )

        assert [isinstance(each, Exception) for each in outcomes] == [False] * 5 + [True] + [
            False
        ] * 5
        assert await state(running, "counter/1") == {"total": 2}


async def test_a_state_too_large_to_keep_fails_alone(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    """Each event fits, but the state they add up to does not: known only when all is decided."""
    half = machines.Load(tuple("x" * 1000 for _ in range(600)))

    async with engine(store, wall, SUBMITTER).running() as running:
        await tell(running, "fan/a", half)
        outcomes = await asyncio.gather(
            tell(running, "counter/a", machines.Add(1)),
            tell(running, "fan/a", half),
            tell(running, "counter/b", machines.Add(1)),
            return_exceptions=True,
        )

        assert [type(each) for each in outcomes] == [
            messages.Receipt, errors.Rejected, messages.Receipt,
        ]  # fmt: skip
        assert len((await state(running, "fan/a"))["waiting"]) == 600
        assert await events(running, "fan/a") == ["Loaded"]


@pytest.mark.parametrize(
    ("column", "value", "fate"),
    [
        ("state", "'{'", errors.Corrupt),
        ("state_type", "'Gone'", errors.Newer),
        ("state_version", "99", errors.Newer),
    ],
)
async def test_a_state_row_that_cannot_be_read_fails_its_own_stream_only(
    home: Home, wall: HandWoundClock, column: str, value: str, fate: type[errors.FairleadError]
) -> None:
    async with engine(home.store(), wall, SUBMITTER).running() as running:
        for stream in ("counter/a", "counter/b"):
            await tell(running, stream, machines.Add(1))
        home.sql(f"UPDATE streams SET {column} = {value} WHERE name = 'counter/a'")  # noqa: S608 - our own words

        broken, sound = await asyncio.gather(
            tell(running, "counter/a", machines.Add(1)),
            tell(running, "counter/b", machines.Add(1)),
            return_exceptions=True,
        )

        assert isinstance(broken, fate)
        assert broken.hint
        assert isinstance(sound, messages.Receipt)
        assert await events(running, "counter/a") == ["Added"]


async def test_an_oversized_command_is_refused_and_nothing_is_written(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        with pytest.raises(errors.Rejected, match="too large"):
            await tell(running, "counter/a", machines.Add(1, "x" * 2_000_000))

        assert running.counts.commits == 0


@pytest.mark.parametrize("note", ["\x00", "\u2028 \U0001f6a2 \\u0000", '"; DROP TABLE streams;'])
async def test_any_text_that_is_text_is_kept_as_it_is(
    store: protocol.Store, wall: HandWoundClock, note: str
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        await tell(running, "counter/a", machines.Add(1, note))
        ((_, _, _, _, data, *_),) = await running.read(
            lambda s: s.rows("stream_events", name="counter/a", after=0, limit=9)
        )

    message_codec = running.registry.of("counter/a").codec.events
    encoded = message_codec.encode(machines.Added(1, note))
    assert data == encoded.data
    assert message_codec.decode(encoded) == machines.Added(1, note)


async def test_a_submitter_that_goes_away_does_not_stop_the_others(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        gone = asyncio.create_task(tell(running, "counter/a", machines.Add(1), "left"))
        await asyncio.sleep(0)
        gone.cancel()
        stays = await tell(running, "counter/b", machines.Add(1))
        again = await tell(running, "counter/a", machines.Add(1), "left")

        assert stays.events == 1
        assert again.events == 1
        assert await state(running, "counter/a") == {"total": 1}


async def test_a_race_is_decided_again_with_locks(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    line = Tampering(before=once("write", protocol.Lost("raced")))
    careful: list[bool] = []

    def note(call: str, subject: protocol.Needed) -> None:
        if call == "load":
            careful.append(subject.careful)

    line.after = note
    async with engine(TamperedStore(store, line), wall, SUBMITTER).running() as running:
        receipt = await tell(running, "counter/a", machines.Add(1))

    assert receipt.events == 1
    assert careful == [False, True]


async def test_races_without_end_are_given_up_with_a_hint(
    store: protocol.Store, wall: HandWoundClock
) -> None:
    def raced(call: str, _: object) -> None:
        if call == "write":
            raise protocol.Lost("raced")

    line = Tampering(before=raced)
    async with engine(TamperedStore(store, line), wall, SUBMITTER).running() as running:
        with pytest.raises(errors.Conflict, match="too many writers"):
            await tell(running, "counter/a", machines.Add(1))
        line.before = lambda *_: None

        assert (await tell(running, "counter/a", machines.Add(1))).events == 1


async def test_what_was_handed_in_before_the_end_is_settled(
    home: Home, wall: HandWoundClock
) -> None:
    async with engine(home.store(), wall, SUBMITTER).running() as running:
        waiting = [
            asyncio.create_task(tell(running, f"counter/{number}", machines.Add(1)))
            for number in range(30)
        ]
        await asyncio.sleep(0)

    receipts = await asyncio.gather(*waiting)
    assert all(receipt.events == 1 for receipt in receipts)
    assert home.sql("SELECT count(*) FROM events") == [(30,)]


def test_a_batch_has_a_limit() -> None:
    assert runner.MAX_BATCH <= 1000


@pytest.mark.parametrize(
    ("kind", "bad"),
    [("sqlite", "\udc80"), ("postgres", "\udc80"), ("postgres", secrets.token_hex(10_000))],
    ids=["half a character on sqlite", "half a character on postgres", "too long for an index"],
)
async def test_what_the_database_refuses_for_good_is_answered_to_its_own_caller_only(
    request: pytest.FixtureRequest, wall: HandWoundClock, kind: str, bad: str
) -> None:
    """A queue that cannot be stored; it is refused at every door but this innermost one."""
    store = request.getfixturevalue(f"{kind}_home").store()

    async with engine(store, wall, SUBMITTER).running() as running:
        outcomes = await asyncio.gather(
            *(tell(running, f"fan/{number}", machines.Load(("x",))) for number in range(5)),
            tell(running, "fan/bad", machines.Load(("x",)), queue=f"local@{bad}"),
            return_exceptions=True,
        )

        assert [type(each) for each in outcomes] == [messages.Receipt] * 5 + [errors.Rejected]
        assert running.counts.troubles == 0


@pytest.mark.parametrize("bad", ["", "x" * 9000, "be\x00ll"])
async def test_a_timer_name_that_no_index_takes_is_refused_at_the_door(
    store: protocol.Store, wall: HandWoundClock, bad: str
) -> None:
    async with engine(store, wall, SUBMITTER).running() as running:
        with pytest.raises(errors.Rejected, match="not a timer name"):
            await tell(running, "bell/a", machines.SetAlarm(wall.now(), name=bad))

        assert running.counts.commits == 0


@pytest.mark.parametrize(
    "bad",
    ["echo/", "echo/" + "x" * 9000, "echo/a b", "echo/\x00"],
    ids=["no key", "too long", "blank", "zero"],
)
async def test_a_stream_that_no_door_would_name_is_not_born_of_a_send_either(
    home: Home, wall: HandWoundClock, bad: str
) -> None:
    async with engine(home.store(), wall, SUBMITTER).running() as running:
        with pytest.raises(errors.Rejected, match="not a stream name"):
            await tell(
                running, "echo/a", machines.Call(name("echo/a"), messages.StreamName(bad), 1)
            )

    assert home.sql("SELECT count(*) FROM streams") == [(0,)]
