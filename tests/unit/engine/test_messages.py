"""The words between machines and engine, and which names they may carry."""

import pytest

from fairlead import errors
from fairlead.engine import messages
from fairlead.engine.testing import START


@pytest.mark.parametrize(
    "text", ["depot/a", "trip/a-1", "stack/team/shop:v1@eu.west_1", "a/" + "k" * 200]
)
def test_a_stream_name_is_machine_and_key(text: str) -> None:
    assert messages.parse_stream(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "depot", "depot/", "/a", "Depot/a", "depot/a b", "depot/-a", "depot/é", "depot/a\n",
     "d" * 41 + "/a", "a/" + "k" * 201, "depot/a\x00"],
)  # fmt: skip
def test_a_stream_name_that_could_not_be_typed_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a stream name"):
        messages.parse_stream(text)


def test_a_long_wrong_name_is_not_repeated_whole() -> None:
    with pytest.raises(errors.Rejected) as refused:
        messages.parse_stream("x" * 10_000)

    assert len(refused.value.message) < 120


def test_a_command_id_is_any_printable_text_up_to_its_limit() -> None:
    text = "é" * messages.MAX_COMMAND_ID

    assert messages.command_id(text) == text


@pytest.mark.parametrize("text", ["", "a\nb", "a\x00b", "\udc80", "x" * 201])
def test_a_command_id_that_could_not_be_stored_is_refused(text: str) -> None:
    with pytest.raises(errors.Rejected, match="not a command id"):
        messages.command_id(text)


def test_a_decision_is_empty_only_if_it_wants_nothing() -> None:
    timer = messages.SetTimer("bell", START, "ring")

    assert not messages.Decision()
    assert messages.Decision(("event",))
    assert messages.Decision(effects=("effect",))
    assert messages.Decision(sends=(messages.Send(messages.StreamName("a/b"), "command"),))
    assert messages.Decision(timers=(timer,))


def test_a_receipt_counts_its_events_and_compares_by_them() -> None:
    stream = messages.stream_name("depot", "a")
    first = messages.Receipt(stream, 3, 5)

    assert first.events == 3
    assert messages.Receipt(stream, 4, 3).events == 0
    assert first == messages.Receipt(stream, 3, 5, duplicate=True)


def test_a_hold_names_its_effect_whoever_holds_it() -> None:
    assert messages.Hold(1, 2, 0, fence=7).key == messages.Hold(1, 2, 0, fence=8).key
