"""A plan that waits for a resource hears once how it came out, and never twice."""

from dataclasses import replace
from typing import Any

import pytest

from fairlead import errors
from fairlead.area import parts
from fairlead.areas.resources import core, plan
from fairlead.areas.resources.domain.reconcile import messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Apply, Remove
from fairlead.engine.messages import Cancel, ChildEnded, Send, stream_name
from tests.unit.areas.resources.domain.reconcile.samples import (
    ABSENT,
    DECLARED,
    ID,
    OTHER,
    REFUSED,
    SAME,
    THROTTLED,
    Story,
)

PLAN = stream_name("deployment", "shop")
ASKED = Apply(DECLARED, PLAN, PLAN)


class Followed(Story):
    """That keeps what it sent to others."""

    def __init__(self) -> None:
        super().__init__()
        self.sends: list[Send] = []

    def tell(self, *commands: Any) -> "Followed":
        for each in commands:
            super().tell(each)
            self.sends += self.last.sends
        return self


def ended(reason: str = "", *, to: str = PLAN) -> Send:
    child = ChildEnded(stream(ID), succeeded=not reason, reason=reason)
    return Send(stream_name(*to.split("/", 1)), child)


def test_it_hears_that_it_is_as_declared_once() -> None:
    story = Followed()
    story.tell(ASKED).seen(ABSENT).accepted()
    assert story.sends == []

    story.seen(SAME)
    story.woken().seen(SAME)
    assert story.sends == [ended()]


def test_what_is_as_declared_already_is_read_again_first() -> None:
    story = Followed()
    story.tell(Apply(DECLARED)).seen(SAME)

    story.tell(ASKED)
    assert (story.sends, story.asked[-1]) == ([], "Read")
    assert story.seen(SAME) is story
    assert story.sends == [ended()]


def test_it_hears_why_it_cannot_be_but_not_what_passes() -> None:
    story = Followed()
    story.tell(ASKED).failed(THROTTLED)
    assert story.sends == []

    story.woken().failed(REFUSED)
    assert story.sends == [ended(REFUSED.message)]


def test_who_asks_later_takes_over_and_the_first_is_told() -> None:
    story, other = Followed(), stream_name("deployment", "other")
    story.tell(ASKED, Apply(OTHER, other, other))
    assert story.sends == [ended("another plan asked for it")]

    story.seen(SAME)
    assert story.sends[1:] == [ended(to=other)]


@pytest.mark.parametrize(
    ("command", "reason"), [(Cancel("no more"), "no more"), (Remove(), "it was removed")]
)
def test_who_cancels_hears_so_and_the_resource_stays_as_it_is(command: Any, reason: str) -> None:
    story = Followed()
    story.tell(ASKED, command)

    assert story.sends == [ended(reason)]
    story.tell(Cancel())
    assert len(story.sends) == 1


def test_a_removed_one_is_followed_from_its_new_beginning() -> None:
    story = Followed()
    story.tell(Apply(DECLARED), Remove(), ASKED).seen(SAME)

    assert story.sends == [ended()]


def test_a_step_says_a_whole_file_and_its_queue() -> None:
    (kind,) = core.core().steps
    assert isinstance(kind, parts.StepKind)
    file: dict[str, Any] = {
        "kind": "cloud-resource",
        "type": DECLARED.type,
        "apiVersion": DECLARED.version,
    }
    file |= {"resourceId": ID, "properties": DECLARED.properties}

    send = kind.start(PLAN, "key", {"resource": file, "queue": "resources@api"})

    assert send == Send(stream(ID), replace(ASKED), "resources@api")
    assert isinstance(send.command, messages.Apply)
    assert plan.start(PLAN, file).queue is None
    with pytest.raises(errors.Rejected, match="the whole of a resource"):
        kind.start(PLAN, "key", {**file, "apiVersion": ""})
    with pytest.raises(errors.FairleadError):
        kind.start(PLAN, "key", {"resource": {"kind": "other"}})
