"""Killed at every commit boundary: right before it, and right after it."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.durability import actor, checks
from tests.durability.conftest import NewStorySetup

AT_ONCE = 8


@pytest.mark.slow
def test_a_story_killed_at_any_commit_is_told_to_its_end_by_the_next_process(
    new_story_setup: NewStorySetup, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    def killed_at(commit: int, after: bool) -> bool:  # noqa: FBT001 - mapped over pairs
        name = f"cut_{commit}_{'after' if after else 'before'}"
        story_setup, log = new_story_setup(name), tmp_path / f"{name}.log"
        cut = actor.Cut(commit, after, far=commit % 2 == after)
        killed = actor.live(story_setup, cut, log)
        if killed:
            actor.live(story_setup, None, log)
        again.append(checks.check(story_setup))
        return killed

    again: list[int] = []
    kills = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in itertools.count(1, AT_ONCE // 2):
            commits = range(first, first + AT_ONCE // 2)
            pairs = list(itertools.product(commits, (False, True)))
            killed = list(pool.map(lambda pair: killed_at(*pair), pairs))
            kills += sum(killed)
            # Commits are not the same number each time: end where nobody was killed.
            if not any(killed):
                break
    record_property("kills", kills)
    record_property("performed_again", sum(again))

    # Each leg of a lane and each strike needs a commit of its own at the least.
    assert kills >= 2 * 25
    assert sum(again) > 0
