"""The demo's outside: it knows a leg by its key."""

import contextlib
from pathlib import Path

from fairlead.cli.demo import road


def test_a_key_is_driven_once_however_often_it_is_asked(tmp_path: Path) -> None:
    with contextlib.closing(road.Road(tmp_path)) as first:
        assert first.ask("k1", "trip/demo1-1", 1)
        assert not first.ask("k1", "trip/demo1-1", 1)

    with contextlib.closing(road.Road(tmp_path)) as second:
        assert not second.ask("k1", "trip/demo1-1", 1)

    assert road.tally(tmp_path, "demo1") == road.Tally(keys=1, legs=1, asked=3)
    assert road.tally(tmp_path, "demo1").again == 2


def test_the_same_leg_under_two_keys_is_seen(tmp_path: Path) -> None:
    with contextlib.closing(road.Road(tmp_path)) as outside:
        outside.ask("k1", "trip/demo1-1", 1)
        outside.ask("k2", "trip/demo1-1", 1)

    seen = road.tally(tmp_path, "demo1")

    assert (seen.keys, seen.legs) == (2, 1)


def test_each_depot_is_counted_alone(tmp_path: Path) -> None:
    with contextlib.closing(road.Road(tmp_path)) as outside:
        outside.ask("k1", "trip/demo1-1", 1)
        outside.ask("k2", "trip/demo11-1", 1)

    assert road.tally(tmp_path, "demo1").keys == 1
