"""A workload on this machine, as a file tells it: `fairlead deploy` hands it in, `up` takes it.

file ──► plain data ──► read ──► Wish ──► Ground.keep (the program, by revision) ──► Want, rollout

The program is kept before the rollout hears of it, so that every revision the rollout may ask for
can be made, now and whenever it is brought back.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import msgspec

from fairlead import errors
from fairlead.domain.rollouts import bonds
from fairlead.domain.rollouts import messages as rollout
from fairlead.domain.rollouts.spec import Version
from fairlead.engine import messages
from fairlead.intents import intake, rollouts, tokens

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]

LONGEST_NAME = 30
"""Names of processes and of Envoy's clusters hold it, with more words beside it."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_HINT = "see docs/reference/rollouts.md"


class LimitWords(rollouts.Words, frozen=True):
    """What the kernel lets one process use."""

    memory_bytes: Count | None = None
    open_files: Count | None = None
    cpu_seconds: Count | None = None


class ProgramWords(rollouts.Words, frozen=True):
    """What runs; it learns its port from the variable PORT."""

    command: list[str]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    health: str | None = None
    drain: str = "10s"
    limits: LimitWords = LimitWords()


class WorkloadWords(rollouts.Rules, frozen=True, kw_only=True):
    """One file: a workload, its version, and the way a new version takes."""

    name: str
    listen: Port
    program: ProgramWords
    version: str = ""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    metrics_port: Port | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a file asks for."""

    listen: int
    metrics_port: int | None
    program: ProgramWords
    want: rollout.Want

    @property
    def name(self) -> str:
        return self.want.name

    @property
    def revision(self) -> str:
        return self.want.version.revision


class Ground(Protocol):
    """The machine as a place for workloads."""

    async def keep(self, wish: Wish) -> None:
        """Remember the program under its revision; Conflict where its port is not to be had."""
        ...


def read(content: object) -> Wish:
    """The wish in plain data; Rejected with the path of what does not hold."""
    words = rollouts.convert(content, WorkloadWords, about=_HINT)
    if not _NAME.fullmatch(words.name) or len(words.name) > LONGEST_NAME:
        raise errors.Rejected(
            f"name: not a name of a workload: {words.name[:80]!r}",
            hint=f"use up to {LONGEST_NAME} lower-case letters, digits and dashes",
        )
    _check_program(words.program)
    revision = _revision(words)
    version = Version(revision, revision, label=words.version)
    want = rollout.Want(words.name, rollouts.spec(words), version, words.replicas)
    return Wish(words.listen, words.metrics_port, words.program, want)


class Deployer:
    """Takes workloads in on behalf of callers."""

    def __init__(self, ground: Ground, door: intake.Intake) -> None:
        self._ground = ground
        self._door = door

    async def deploy(self, caller: intake.Caller, content: object) -> tuple[Wish, messages.Receipt]:
        """Hand a workload to its rollout; the same one again changes nothing."""
        intake.authorise(caller, tokens.Role.OPERATOR)
        wish = read(content)
        await self._ground.keep(wish)
        data: Any = msgspec.to_builtins(wish.want)
        request = intake.Request(bonds.rollout_stream(wish.name), "Want", data)
        return wish, await self._door.submit(caller, request)


def _check_program(words: ProgramWords) -> None:
    if not words.command or not words.command[0]:
        raise errors.Rejected("program.command: empty", hint="give the command as a list of words")
    given = (*words.command, *words.env, *words.env.values(), words.cwd or "")
    if any("\0" in word for word in given) or any("=" in key or not key for key in words.env):
        raise errors.Rejected(
            "program: command or environment cannot be given to a process",
            hint="remove NUL characters, and '=' from names of variables",
        )
    if words.health is not None and not words.health.startswith("/"):
        raise errors.Rejected(
            f"program.health: not a path: {words.health[:80]!r}", hint="begin it with a slash"
        )
    rollouts.duration(words.drain, "program.drain")


def _revision(words: WorkloadWords) -> str:
    """The same program under the same name of its version is the same revision."""
    meant = (words.version, msgspec.to_builtins(words.program))
    text = msgspec.json.encode(meant, order="sorted")
    return hashlib.blake2b(text, digest_size=5).hexdigest()
