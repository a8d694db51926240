"""Triggers in the terminal: what was pushed or started, and what became of each target."""

import click
import msgspec

from fairlead.areas.deployments.commands import nouns
from fairlead.areas.deployments.domain.trigger.machine import TRIGGER
from fairlead.areas.deployments.domain.trigger.messages import trigger_stream
from fairlead.areas.deployments.domain.trigger.state import Trigger, status
from fairlead.console import printing
from fairlead.console.nouns import Noun
from fairlead.engine import visibility


def _trigger(view: visibility.StreamView) -> Trigger:
    return msgspec.convert(view.data, Trigger)


def _row(view: visibility.StreamView) -> tuple[str, ...]:
    state = _trigger(view)
    source = state.source
    repository, commit = (source.repository, source.commit[:12]) if source else ("", "")
    return state.name, status(state), repository, commit or "-", state.cause, state.by


def _show(view: visibility.StreamView) -> None:
    state = _trigger(view)
    commit = state.source.commit if state.source else ""
    printing.pairs(
        [
            ("trigger", state.name),
            ("status", status(state)),
            ("repository", state.source.repository if state.source else "-"),
            ("commit", commit or "not known yet"),
            ("cause", f"{state.cause} by {state.by}"),
        ]
    )
    click.echo("")
    rows = [
        (run.target.key, run.progress.value, run.deployment or "-", run.reason or "-")
        for run in state.runs
    ]
    printing.columns(("TARGET", "STATUS", "DEPLOYMENT", "WHY"), rows)


TRIGGER_NOUN = Noun(
    singular="trigger",
    plural="triggers",
    list=nouns.listing(TRIGGER),
    find=lambda asked, name: asked.stream(trigger_stream(name)),
    heads=("TRIGGER", "STATUS", "REPOSITORY", "COMMIT", "CAUSE", "BY"),
    row=_row,
    show=_show,
    line=lambda view: "  ".join((printing.moment(view.updated_at), *_row(view))),
    key=nouns.key,
    essence=_row,
)
