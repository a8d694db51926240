"""`fairlead content serve` as a process of its own, for tests that ask it over HTTP."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import httpx

from tests import contents

_SERVING = re.compile(r"is serving \S+: (\S+)")


def describe(folder: Path, source: Mapping[str, str], **more: object) -> Path:
    """The file of a content like the original's."""
    file = folder / "content.json"
    words = {"name": "gathering", "kind": "gathering", "source": dict(source), **more}
    file.write_text(json.dumps(words))
    return file


def gathering(folder: Path, versions: Sequence[str]) -> Path:
    """Such a content with these versions in folders."""
    for version in versions:
        contents.write(folder / "versions" / version, contents.version_files(version))
    return describe(folder, {"directory": "versions"})


def set_share(file: Path, share: str, canary: str = "") -> None:
    """By a person where no canary is named, else as a release of it does."""
    beside = file.with_suffix(".new")
    beside.write_text(json.dumps({"salt": "1.0.2", "share": share, "canary": canary}))
    beside.replace(file)


@dataclass(slots=True)
class Instance:
    """One process; serves from entering the block to leaving it."""

    file: Path
    stable: str
    canary: str = "none"
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    said: list[str] = field(default_factory=list)
    process: "subprocess.Popen[str] | None" = None
    client: httpx.Client = field(default_factory=lambda: httpx.Client(timeout=20))

    def start(self, stderr: int = subprocess.PIPE) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "fairlead", "content", "serve", str(self.file)]
        kept = {each: os.environ[each] for each in ("PATH", "HOME") if each in os.environ}
        versions = {"STABLE_VERSION": self.stable, "CANARY_VERSION": self.canary}
        settings = {"FAIRLEAD_CONTENT_DRAIN_SECONDS": "0.2", **self.variables}
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", *self.options],
            stderr=stderr,
            text=True,
            env={**kept, **versions, **settings},
        )
        return self.process

    def __enter__(self) -> Self:
        process = self.start()
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line)
            if found := _SERVING.search(line):
                self.url = found[1]
                return self
        raise AssertionError(f"did not start: {''.join(self.said)}")

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.client.close()

    def stop(self) -> int:
        """By the signal that a deployment sends; its exit code."""
        process = self.process
        assert process is not None
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=30)
        self.said.append(rest or "")
        return process.returncode

    def fails(self) -> tuple[int, str]:
        """Where it must not start: its exit code and what it said."""
        _, said = self.start().communicate(timeout=60)
        assert self.process is not None
        return self.process.returncode, said
