"""A full disk under SQLite: refused with a hint, nothing half-written, and it goes on."""

import json
import subprocess
import sys
from pathlib import Path

from tests.durability import checks, cramped, story, worker


def test_a_full_disk_refuses_clearly_and_leaves_no_trace(tmp_path: Path) -> None:
    story_setup = story.StorySetup(str(tmp_path / "full.db"), tmp_path / "rollout", cramped.SIZE)
    story_setup.store().migrate()

    told = run(story_setup, tmp_path)

    assert told["refused"] == cramped.REFUSALS
    assert str(told["message"]).startswith("the database did not answer: ")
    assert "free space" in str(told["hint"])
    seen = told["seen_meanwhile"]
    assert isinstance(seen, list)
    assert "depot/d0" in seen
    assert [name for name in seen if "refused" in name] == []
    checks.check(story_setup)


def run(story_setup: story.StorySetup, folder: Path) -> dict[str, object]:
    answer = folder / "answer"
    with (folder / "log").open("wb") as log:
        ended = subprocess.run(
            [
                *(sys.executable, "-m", cramped.__name__),
                *(story_setup.database, str(story_setup.rollout), str(answer)),
            ],
            cwd=worker.ROOT,
            stdout=log,
            stderr=log,
            timeout=story.PATIENCE,
            check=False,
        )
    assert ended.returncode == 0, (folder / "log").read_text()[-3000:]
    found: dict[str, object] = json.loads(answer.read_text())
    return found
