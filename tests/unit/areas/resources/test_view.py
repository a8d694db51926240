"""Why a resource waits, in a sentence, at the points of its life where it does."""

import datetime as dt
from pathlib import Path

import msgspec
import pytest

from fairlead.areas.resources import view
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.machine import RESOURCE
from fairlead.areas.resources.domain.reconcile.messages import Apply
from fairlead.engine import service, visibility
from fairlead.engine.messages import command_id
from fairlead.engine.store import sqlite
from fairlead.engine.testing import START
from tests.unit.areas.resources.domain.reconcile.samples import (
    ABSENT,
    APPLY,
    BUSY,
    DECLARED,
    DIFFERENT,
    ID,
    PATCH,
    SAME,
    THROTTLED,
    Story,
)


def seen(story: Story) -> view.Summary:
    data = msgspec.to_builtins(story.state)
    at = (START, START, None)
    return view.summary(visibility.StreamView(1, stream(ID), "resource", 1, "", data, *at))


def test_while_it_is_written_what_differs_is_told_until_it_is_as_declared() -> None:
    story = Story().tell(APPLY).seen(DIFFERENT)
    written = seen(story)
    done = seen(story.accepted().seen(SAME))

    assert (written.phase, written.differs, written.last_write) == ("Writing", PATCH.reasons, START)
    assert (done.phase, done.differs, done.last_write) == ("Ready", (), START)
    assert done.next is not None
    assert done.next > START


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (Story().tell(APPLY).seen(ABSENT).failed(THROTTLED), "Throttled: too many requests"),
        (Story().tell(APPLY).seen(ABSENT).accepted().seen(BUSY), "the API works on it: Updating"),
        (Story().tell(APPLY).seen(SAME), ""),
    ],
)
def test_what_waits_says_what_for(story: Story, why: str) -> None:
    assert seen(story).why == why


async def test_what_nobody_performs_says_so(tmp_path: Path) -> None:
    store = sqlite.SqliteStore(tmp_path / "store.db", [RESOURCE.name])
    store.migrate()
    async with service.Engine(service.Parts(store, (RESOURCE,))).running() as engine:
        await engine.submit(stream(ID), Apply(DECLARED), command_id("apply"), queue="resources@a")
        view_ = await engine.read(lambda s: visibility.stream(s, stream(ID)))
        later = view_.updated_at + dt.timedelta(minutes=1)
        told = await engine.read(lambda s: view.read(s, ID, later))

    assert told.why.startswith("no worker serves resources@a since ")
