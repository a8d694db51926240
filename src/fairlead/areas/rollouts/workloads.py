"""A workload on this machine, as a file describes it: `fairlead deploy` sends it, `up` runs it.

file ──► plain data ──► read ──► DeployRequest ──► DeployTarget.keep (the program, by revision)
                                        └──► Request to the rollout

The program is kept before the rollout hears of it, so that every revision the rollout may ask for
can be made, now and whenever it is brought back.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

import msgspec

from fairlead import errors, validation
from fairlead.access import intake, scopes, tokens
from fairlead.areas.rollouts import rules
from fairlead.areas.rollouts.domain import coordination
from fairlead.areas.rollouts.domain import messages as rollout
from fairlead.areas.rollouts.domain.plan.spec import Version, within
from fairlead.checks.spec import Check
from fairlead.engine import messages
from fairlead.validation import refusal
from fairlead.web.services import Service

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1)]

LONGEST_NAME = 30
"""Names of processes and of Envoy's clusters hold it, with more words beside it."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_SAID = {"name": "workload", "project": "project"}
# No label holds it, so no two names become the same one.
_JOINT = "_"


class LimitWords(rules.Words, frozen=True):
    """What the kernel lets one process use."""

    memory_bytes: Count | None = None
    open_files: Count | None = None
    cpu_seconds: Count | None = None


class ProgramWords(rules.Words, frozen=True):
    """What runs; it learns its port from the variable PORT."""

    command: list[str]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    health: str | None = None
    drain: rules.Duration = "10s"
    limits: LimitWords = LimitWords()


class WorkloadWords(rules.Rules, frozen=True, kw_only=True):
    """One file: a workload, its version, and the way a new version takes."""

    name: str
    project: str = ""
    listen: Port
    program: ProgramWords
    version: str = ""
    replicas: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    metrics_port: Port | None = None


@dataclass(frozen=True, slots=True)
class DeployRequest:
    """What a file asks for."""

    words: WorkloadWords
    want: rollout.Request

    @property
    def listen(self) -> int:
        return self.words.listen

    @property
    def metrics_port(self) -> int | None:
        return self.words.metrics_port

    @property
    def program(self) -> ProgramWords:
        return self.words.program

    @property
    def name(self) -> str:
        return self.want.name

    @property
    def revision(self) -> str:
        return self.want.version.revision


class DeployTarget(Protocol):
    """The machine as a place for workloads."""

    @property
    def queue(self) -> str:
        """Where rollouts of workloads on this machine are born."""
        ...

    async def keep(self, deploy_request: DeployRequest) -> None:
        """Remember the program under its revision; Conflict where its port is not to be had."""
        ...

    async def remember(self, words: WorkloadWords) -> None:
        """Remember what was deployed last, whole."""
        ...

    async def deployed(self, name: str) -> WorkloadWords | None:
        """What was deployed last; None where that is nothing."""
        ...


DEPLOY_TARGET: Service[DeployTarget] = Service("deploy target")
Answers = Callable[[Check, str], Iterable[tuple[str, str]]]
"""Of a check and the workload's name: its fields that nobody here can answer, and why."""

ANSWERS: Service[Answers] = Service("answers to checks")


def read(content: object) -> DeployRequest:
    """The request in plain data; Invalid with the paths of all that does not hold."""
    told: list[errors.Problem] = []
    rest = content
    while True:
        try:
            request = _meant(rules.convert(rest, WorkloadWords))
        except errors.Invalid as error:
            told += _unheard(error.problems, told)
            # One mistake may hide others: the rest is read without the fields that have one.
            left = validation.without(rest, [each.path for each in error.problems])
            left = validation.completed(left, WorkloadWords)
            if left == rest or len(told) >= validation.MOST:
                raise errors.Invalid(told) from error
            rest = left
        else:
            break
    if told:
        raise errors.Invalid(told)
    return request


def _unheard(
    found: Sequence[errors.Problem], told: Sequence[errors.Problem]
) -> Sequence[errors.Problem]:
    """Without what a mistake was made of: what a field is part of may be wrong for lack of it."""
    return [each for each in found if not any(one.path.startswith(each.path) for one in told)]


def _meant(words: WorkloadWords) -> DeployRequest:
    gathered = validation.Gathered()
    with gathered.part():
        label(words.name)
    with gathered.part():
        if words.project:
            label(words.project, "project")
    with gathered.part():
        _check_program(words.program)
    with gathered.part():
        spec = rules.spec(words)
    gathered.settle()
    revision = _revision(words)
    version = Version(revision, revision, label=words.version)
    if words.project:
        spec = within(spec, words.project, words.name)
    want = rollout.Request(full_name(words), spec, version, words.replicas)
    return DeployRequest(words, want)


def full_name(words: WorkloadWords) -> str:
    """How its rollout is called: two projects may have a workload of the same name."""
    return f"{words.project}/{words.name}" if words.project else words.name


def label(name: str, what: str = "name") -> str:
    """The name, never a path: files, processes and Envoy's clusters are called by it."""
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        hint = f"use up to {LONGEST_NAME} lower-case letters, digits and dashes"
        raise refusal(what, f"invalid {_SAID[what]} name: {name[:80]!r}", hint)
    return name


def file_name(name: str) -> str:
    """A full name as one word for files and processes; `named` reads it back."""
    project, slash, rest = name.partition("/")
    if not slash:
        return label(name)
    return f"{label(project, 'project')}{_JOINT}{label(rest)}"


def named(file: str) -> str:
    """The full name behind a name of files and processes."""
    return file.replace(_JOINT, "/", 1)


class Deployer:
    """Takes workloads in on behalf of callers."""

    def __init__(
        self, target: DeployTarget, intake_: intake.Intake, answers: Answers | None = None
    ) -> None:
        self._target = target
        self._intake = intake_
        self._answers = answers

    async def deploy(
        self, caller: intake.Caller, content: object
    ) -> tuple[DeployRequest, messages.Receipt]:
        """Hand a workload to its rollout; the same one again changes nothing."""
        intake.authorise(caller, tokens.Role.DEPLOYER)
        deploy_request = read(content)
        _check_project(caller, deploy_request.words)
        check_answers(deploy_request, self._answers)
        stream, queue = coordination.rollout_stream(deploy_request.name), self._target.queue
        await take_over(self._intake, deploy_request.name, queue)
        await self._target.keep(deploy_request)
        data: Any = msgspec.to_builtins(replace(deploy_request.want, by=caller.name))
        request = intake.Request(stream, "Request", data, queue=queue)
        receipt = await self._intake.submit(caller, request)
        # Afterwards: what was refused is not deployed.
        await self._target.remember(deploy_request.words)
        return deploy_request, receipt


def check_answers(request: DeployRequest, answers: Answers | None) -> None:
    """Invalid with the checks that nobody can answer, before the first step finds out.

    Without a platform that says who answers, none is refused.
    """
    checks = zip(request.words.checks, request.want.spec.checks, strict=True)
    problems = [
        _unanswered(f"checks[{n}].{_field(words, field)}", reason)
        for n, (words, check) in enumerate(checks)
        for field, reason in (answers(check, request.name) if answers else ())
    ]
    if problems:
        raise errors.Invalid(problems)


def _unanswered(at: str, reason: str) -> errors.Problem:
    message, _, hint = reason.partition("; ")
    return errors.Problem(at, message, hint or "see docs/reference/checks.md")


def _field(words: rules.CheckWords, field: str) -> str:
    """What a query is called in the file."""
    given = (word for word in ("metric", "web", "gate") if getattr(words, word) is not None)
    return next(given, field) if field == "query" else field


async def take_over(intake_: intake.Intake, name: str, queue: str) -> None:
    """A rollout that is over, or from before there were queues, may begin anew here."""
    stream = coordination.rollout_stream(name)
    known = await intake_.find(stream)
    if known is None or known.queue == queue:
        return
    # What an ended one still asks for would follow it, and take down here what it built there.
    if known.queue and (known.ended_at is None or await intake_.waits(stream)):
        raise errors.Conflict(
            f"{name} runs on another machine, which serves: {known.queue}",
            hint="deploy it there, or under another name",
        )
    await intake_.move(stream, queue)


def _check_project(caller: intake.Caller, words: WorkloadWords) -> None:
    """Before anything is kept; what other projects have is not told by it."""
    if caller.scope not in (scopes.EVERYWHERE, words.project):
        raise errors.Forbidden(
            f"this token deploys to one project only: {caller.scope}",
            hint=f"write project: {caller.scope} into the file",
        )


def _check_program(words: ProgramWords) -> None:
    if not words.command or not words.command[0]:
        raise refusal("program.command", "empty", "give the command as a list of words")
    given = (*words.command, *words.env, *words.env.values(), words.cwd or "")
    if any("\0" in word for word in given) or any("=" in key or not key for key in words.env):
        raise refusal(
            "program",
            "command or environment cannot be given to a process",
            "remove NUL characters, and '=' from names of variables",
        )
    if words.health is not None and not words.health.startswith("/"):
        said = f"not a path: {words.health[:80]!r}"
        raise refusal("program.health", said, "begin it with a slash")
    rules.duration(words.drain, "program.drain")


def _revision(words: WorkloadWords) -> str:
    """The same program under the same name of its version is the same revision."""
    meant = (words.version, msgspec.to_builtins(words.program))
    text = msgspec.json.encode(meant, order="sorted")
    return hashlib.blake2b(text, digest_size=5).hexdigest()
