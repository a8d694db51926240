"""The image, by its recipe: no root, no shell, no surprise. No image is built here."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from fairlead import __version__
from fairlead.kubernetes.install import workload

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "deploy" / "Containerfile"
BUILD_TOOLS = ("gcc", "build-essential", "apt-get", "apk ", "make", "cargo", "curl", "wget")


class Step(NamedTuple):
    """One instruction of the recipe, in the stage it belongs to."""

    stage: int
    word: str
    rest: str


def steps() -> list[Step]:
    return list(parsed(RECIPE.read_text(encoding="utf-8")))


def parsed(text: str) -> Iterator[Step]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    stage = 0
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, rest = line.split(maxsplit=1)
        stage += word == "FROM"
        yield Step(stage, word, rest)


def last_stage() -> list[Step]:
    found = steps()
    return [step for step in found if step.stage == found[-1].stage]


def only(word: str) -> str:
    (found,) = [step.rest for step in last_stage() if step.word == word]
    return found


def environment() -> dict[str, str]:
    return dict(part.split("=", 1) for part in only("ENV").split())


def test_every_base_is_pinned_by_a_tag_that_says_a_version() -> None:
    bases = [step.rest.split()[0] for step in steps() if step.word == "FROM"]

    assert len(bases) == 2
    assert all(re.fullmatch(r"[a-z]+:\d+\.\d+[\w.-]*", base) for base in bases), bases


def test_the_last_stage_only_copies() -> None:
    words = {step.word for step in last_stage()}

    assert words <= {"FROM", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    copied = [step.rest for step in last_stage() if step.word == "COPY"]
    assert all("--from=build" in rest for rest in copied)


def test_the_user_is_a_number_that_the_pod_asks_for_too() -> None:
    user, group = map(int, only("USER").split(":"))

    assert user == group == workload.USER
    assert user > 0


def test_nothing_goes_through_a_shell() -> None:
    registered = [step for step in steps() if step.word in {"RUN", "CMD", "ENTRYPOINT"}]

    commands = [json.loads(step.rest) for step in registered]
    assert len(commands) >= 4
    assert not [one for one in commands if one[0].endswith("sh") or "-c" in one]


def test_nothing_is_fetched_but_by_hash() -> None:
    found = steps()
    installs = [step.rest for step in found if step.word == "RUN" and '"pip"' in step.rest]

    assert not [step for step in found if step.word == "ADD"]
    assert not [step for step in found if "://" in step.rest]
    assert not [tool for tool in BUILD_TOOLS for step in found if f'"{tool}' in step.rest]
    assert len(installs) == 1
    assert '"--require-hashes"' in installs[0]
    assert '"--only-binary=:all:"' in installs[0]


def test_what_is_copied_is_in_the_repository() -> None:
    sources = [
        source
        for step in steps()
        if step.word == "COPY" and "--from=" not in step.rest
        for source in step.rest.split()[:-1]
    ]

    assert [source for source in sources if not (ROOT / source).exists()] == []
    # Not the whole folder: a stray .env or database would travel with it.
    assert "." not in sources


def test_the_state_folder_is_the_one_that_the_pod_mounts() -> None:
    assert environment()["FAIRLEAD_STATE_DIR"] == workload.STATE


def test_no_secret_is_baked_in() -> None:
    assert not [name for name in environment() if re.search("TOKEN|PASSWORD|SECRET|KEY", name)]


def test_the_entrypoint_starts_the_program(tmp_path: Path) -> None:
    _, *arguments = json.loads(only("ENTRYPOINT"))
    given = {**environment(), "PYTHONPATH": str(ROOT / "src"), "PATH": os.environ["PATH"]}
    given["FAIRLEAD_STATE_DIR"] = str(tmp_path)

    done = subprocess.run(
        [sys.executable, *arguments, "--version"],
        env=given,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert __version__ in done.stdout
