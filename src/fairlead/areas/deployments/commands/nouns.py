"""Stacks and deployments as the terminal shows them: lists, one of them closely, each change."""

from collections.abc import Callable, Sequence
from typing import Any

import click
import msgspec

from fairlead import errors
from fairlead.areas.deployments import detail, verbs
from fairlead.areas.deployments.commands import manifest, progress
from fairlead.areas.deployments.domain.declared_verbs import OF_MACHINES
from fairlead.areas.deployments.domain.deployment.machine import DEPLOYMENT
from fairlead.areas.deployments.domain.deployment.state import Deployment, StepRun, phase
from fairlead.areas.deployments.domain.messages import StepStatus
from fairlead.areas.deployments.domain.plan.graph import ready
from fairlead.areas.deployments.domain.spec import deployment_stream, stack_stream
from fairlead.areas.deployments.domain.stack.machine import STACK
from fairlead.areas.deployments.domain.stack.state import Stack
from fairlead.console import clients, printing
from fairlead.console.clients import Source, StoreSource
from fairlead.console.nouns import Noun
from fairlead.engine import filters, machine, messages, visibility

View = visibility.StreamView
_EFFECTS = 20


def listing(of: machine.AnyMachine) -> Callable[[Source, int, str], Sequence[View]]:
    known = machine.Machines([of])

    def listed(asked: Source, limit: int, where: str) -> Sequence[View]:
        fits = filters.where(where, known, of.name)
        which = visibility.StreamFilter(of.name, limit=limit, where=fits)
        # A server is asked in the words that were typed.
        return asked.read(
            lambda session: StoreSource(session).streams(which),
            lambda server: server.streams(which, where),
        )

    return listed


def _finding(stream: Callable[[str], messages.StreamName]) -> Callable[[Source, str], View]:
    return lambda asked, name: asked.stream(stream(name))


def _deployment_found(asked: Source, name: str) -> View:
    def effects(stream: messages.StreamName) -> Sequence[visibility.EffectView]:
        try:
            return asked.effects(stream, _EFFECTS, dead=None)
        except errors.Forbidden:
            return ()  # a token of one environment may not list them

    def unserved(stream: messages.StreamName) -> str:
        try:
            return clients.unserved(asked, asked.stream(stream))
        except errors.NotFound:
            return ""  # nor may it see a step that is elsewhere

    return detail.with_trouble(asked.stream(deployment_stream(name)), effects, unserved)


def _stack(view: View) -> Stack:
    return msgspec.convert(view.data, Stack)


def _deployment(view: View) -> Deployment:
    return msgspec.convert(view.data, Deployment)


def _show_stack(view: View) -> None:
    stack = _stack(view)
    printing.pairs(
        [
            ("stack", stack.name),
            ("status", stack.status.value),
            ("current", stack.current or "none"),
            ("queue", ", ".join(stack.queue) or "empty"),
            ("why", stack.reason or "-"),
            ("since", printing.moment(view.updated_at)),
        ]
    )


def _stack_row(view: View) -> tuple[str, ...]:
    stack = _stack(view)
    current, queued = stack.current or "-", str(len(stack.queue))
    return stack.name, stack.status.value, current, queued, _first_line(stack.reason)


def _stack_line(view: View) -> str:
    name, status, current, queued, why = _stack_row(view)
    parts = (printing.moment(view.updated_at), name, status, current, f"queued: {queued}", why)
    return "  ".join(parts).rstrip(" -")


def _show_deployment(view: View) -> None:
    state = _deployment(view)
    spec = state.spec
    printing.pairs(
        [
            ("deployment", state.name),
            ("stack", spec.key if spec else "-"),
            ("version", spec.version if spec else "-"),
            ("status", _status(state)),
            ("class", state.impact.value if state.impact else "not known"),
            ("waits for", state.waits_for or "-"),
            ("why", state.reason.replace("\n", "; ") or "-"),
            (
                "requested",
                " ".join(filter(None, (state.cause, state.by and f"by {state.by}"))) or "-",
            ),
        ]
    )
    for reason in state.reasons:
        click.echo(f"  {printing.shown(reason)}")
    if state.steps:
        click.echo("")
        rows = [_step_row(state, run) for run in state.steps]
        printing.columns(("STEP", "KIND", "AFTER", "STATUS", "TRIES", "ERROR"), rows)


def _step_row(state: Deployment, run: StepRun) -> tuple[str, ...]:
    done = [each.step.name for each in state.those(StepStatus.DONE)]
    waits = run.status is StepStatus.BLOCKED and ready([run.step], done)
    status = StepStatus.READY if waits else run.status
    after = ", ".join(run.step.depends_on) or "-"
    tries = f"{run.attempt}/{run.step.attempts}"
    return run.step.name, run.step.kind, after, status.value, tries, run.error or "-"


def _deployment_row(view: View) -> tuple[str, ...]:
    state = _deployment(view)
    stack, version = (state.spec.key, state.spec.version) if state.spec else ("-", "-")
    why = _first_line(state.reason or state.waits_for)
    return state.name, stack, version or "-", _status(state), why


def _deployment_line(view: View) -> str:
    return "  ".join((printing.moment(view.updated_at), *_deployment_row(view))).rstrip(" -")


def _status(state: Deployment) -> str:
    now = phase(state)
    return f"{state.status.value} ({now})" if now else state.status.value


def _first_line(text: str) -> str:
    return text.partition("\n")[0] or "-"


def key(view: Any) -> str:
    return str(view.name).partition("/")[2]


STACK_NOUN = Noun(
    singular="stack",
    plural="stacks",
    list=listing(STACK),
    find=_finding(stack_stream),
    heads=("STACK", "STATUS", "CURRENT", "QUEUED", "WHY"),
    row=_stack_row,
    show=_show_stack,
    line=_stack_line,
    key=key,
    essence=_stack_row,
    verbs=OF_MACHINES["stack"],
    steer=verbs.steering("stack"),
)
DEPLOYMENT_NOUN = Noun(
    singular="deployment",
    plural="deployments",
    list=listing(DEPLOYMENT),
    find=_deployment_found,
    heads=("DEPLOYMENT", "STACK", "VERSION", "STATUS", "WHY"),
    row=_deployment_row,
    show=_show_deployment,
    line=_deployment_line,
    key=key,
    essence=_deployment_row,
    verbs=OF_MACHINES["deployment"],
    steer=verbs.steering("deployment"),
    manifest=manifest.DEPLOYMENT,
    progress=lambda view, _: progress.progress(_deployment(view)),
)
