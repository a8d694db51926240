"""What the tutorial of a first rollout tells a reader to save and to type is saved and typed."""

import asyncio
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.clients.processes import clean_up
from tests.contract.local.shop_versions import free_port

pytestmark = [pytest.mark.xdist_group("envoy"), pytest.mark.slow]
PAGE = Path(__file__).parents[2] / "docs/tutorial/first-rollout.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
LASTING = ("fairlead up", "while ")
"""What a reader leaves running in a terminal of its own."""


class Reader:
    """Somebody who follows the page in a folder, on ports that are free here."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.page, self.shop = free_port(), free_port()
        self.printed = ""
        self.lasting: list[subprocess.Popen[str]] = []

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if "FAIRLEAD" not in name}
        return inherited | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "FAIRLEAD_STATE_DIR": str(self.folder / "state"),
            "FAIRLEAD_LISTEN": f"127.0.0.1:{self.page}",
            "PYTHONWARNINGS": "default",
        }

    def follow(self, kind: str, name: str, text: str) -> None:
        text = text.replace("8080", str(self.shop))
        if name and kind != "sh":
            (self.folder / name).write_text(text, encoding="utf-8")
        elif text.startswith(LASTING):
            self._leave_running(text)
        else:
            self._type(text, fails=name == "fails")

    def _leave_running(self, text: str) -> None:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {text}" if text.startswith("fairlead") else text],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.lasting.append(process)
        if text.startswith("fairlead"):
            assert process.stderr is not None
            assert any("fairlead is up" in line for line in process.stderr)

    def _type(self, text: str, *, fails: bool) -> None:
        done = subprocess.run(
            ["bash", "-ec", text],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        self.printed += done.stdout + done.stderr
        assert bool(done.returncode) is fails, f"{text}{done.stdout}{done.stderr}"

    def leave(self) -> None:
        for process in self.lasting:
            with contextlib.suppress(ProcessLookupError):
                # The whole session: a loop has children.
                os.killpg(process.pid, 15)
            process.communicate(timeout=60)


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "fairlead"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m fairlead "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    made = Reader(tmp_path)
    try:
        yield made
    finally:
        made.leave()
        asyncio.run(clean_up(tmp_path / "state/local/processes", drain_seconds=2.0))


def test_every_block_of_the_page_does_what_it_says(reader: Reader) -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))

    for kind, name, text in blocks:
        reader.follow(kind, name, text)

    answers = re.findall(r"welcome to the shop, (v\d)", reader.printed)
    assert answers == ["v1", "v2"]
    assert re.search(r"success: .* requests failed: .* %, at least 99 % required", reader.printed)
    assert len(blocks) == 9
