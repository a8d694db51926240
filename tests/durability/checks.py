"""What must be true of a story that is over, however often it was cut."""

import contextlib

from fairlead.engine import batch, codec, messages, projections, visibility
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol
from tests.durability import outside, story

REGISTRY = batch.MachineRegistry(machines.Machines(story.MACHINES))


def check(story_setup: story.StorySetup) -> int:
    """Raise where anything was lost or done twice; how often the outside was asked again."""
    with contextlib.closing(story_setup.store().open()) as session:
        streams = visibility.streams(session, visibility.StreamFilter(limit=100_000))
        assert len(streams) == story_setup.size.streams
        assert [each.name for each in streams if each.ended_at is None] == []
        assert session.rows("count_rows") == [(0, 0, 0, 0)]
        total = sum(check_events(session, each.name) for each in streams)
        assert total == story_setup.size.events
        _check_projection(session, streams)
    return _check_outside(story_setup)


def check_events(session: protocol.Session, name: messages.StreamName) -> int:
    """The events fold to the state that stands in the row, and none is missing."""
    ((_, _, _, version, state_type, state_version, state, *_),) = session.rows(
        "get_stream", name=name
    )
    rows = session.rows("stream_events", name=name, after=0, limit=100_000)
    assert [row[1] for row in rows] == list(range(1, version + 1)), name
    registered = REGISTRY.of(name)
    folded = registered.machine.initial
    for _, _, type_, event_version, data, *_ in rows:
        event = registered.codec.events.decode(codec.Encoded(type_, event_version, data))
        folded = registered.machine.evolve(folded, event)
    kept = registered.codec.states.decode(codec.Encoded(state_type, state_version, state))
    assert folded == kept, name
    return len(rows)


def _check_projection(session: protocol.Session, streams: list[visibility.StreamView]) -> None:
    rows = dict(projections.rows(session, story.COUNTED.name, limit=100_000))
    right = {
        each.name: {"events": each.version, "last": each.version, "broken": 0} for each in streams
    }
    wrong = {name: rows.get(name) for name in right if rows.get(name) != right[name]}
    assert not wrong, f"{len(wrong)} of {len(right)} rows, such as {sorted(wrong.items())[:5]}"
    assert rows.keys() == right.keys()


def _check_outside(story_setup: story.StorySetup) -> int:
    world = outside.Outside(story_setup.rollout)
    accepted = world.accepted()
    assert sorted(accepted) == sorted(story_setup.size.effects())
    assert {what: keys for what, keys in accepted.items() if len(keys) != 1} == {}
    assert len({keys[0] for keys in accepted.values()}) == len(accepted)
    return world.count() - len(accepted)
