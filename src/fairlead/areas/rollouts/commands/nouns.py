"""Rollouts as the terminal shows them: the list, one of them closely, and each change of it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import click

from fairlead.areas.rollouts import detail, history, projection, requests
from fairlead.areas.rollouts.commands import manifest, progress
from fairlead.areas.rollouts.domain import actions, declared_verbs
from fairlead.console import printing
from fairlead.console.clients import Source
from fairlead.console.nouns import Action, Noun, PastRun
from fairlead.engine import messages, service

_BAR = 30
_NEWS = 12


def show(told: detail.Detail) -> None:
    one = told.rollout
    printing.pairs(
        [
            ("rollout", one.title),
            ("phase", one.phase),
            ("now", one.sentence),
            *([("waiting", told.unserved)] if told.unserved else []),
            ("weights", _weights(one)),
            ("stable", one.stable),
            ("canary", one.canary or "none"),
            ("last run", _last_run(told)),
            ("verbs", ", ".join(told.verbs) or "none"),
            ("kept", ", ".join(_kept(each) for each in told.kept) or "none"),
        ]
    )
    _table("STEPS", ("STEP", "WEIGHT", "STATE", "REACHED"), [_step(step) for step in told.plan])
    checks = [
        (each.name, progress.result(each), str(each.measured), each.reason) for each in told.checks
    ]
    _table("CHECKS", ("CHECK", "RESULT", "MEASURED", "REASON"), checks)
    if told.runs:
        run = told.runs[0]
        news = [_news(each) for each in run.news[:_NEWS]]
        _table(f"HISTORY OF {run.target}", ("AT", "WHAT", "TEXT"), news)


def _last_run(told: detail.Detail) -> str:
    """How the newest one that is over ended; the run in progress has no end yet."""
    ended = next((run for run in told.runs if run.ended is not None), None)
    return f"{ended.target} {ended.ending}: {ended.end_why}" if ended else "none"


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    if lines:
        click.echo("")
        click.echo(printing.shown(title))
        printing.columns(heads, lines)


def _row(one: projection.Summary) -> tuple[str, ...]:
    return (
        one.title,
        one.phase,
        one.stable,
        one.canary or "-",
        f"{one.canary_weight} %" if one.canary else "-",
        f"{one.step}/{one.steps}" if one.step else "-",
        printing.moment(one.since),
        one.why,
    )


def line(one: projection.Summary) -> str:
    parts = (printing.moment(one.updated), one.title, one.phase, _weights(one), one.sentence)
    return "  ".join(parts)


def _weights(one: projection.Summary) -> str:
    if not one.canary:
        return f"{one.primary} {one.primary_weight} %"
    canary = round(_BAR * one.canary_weight / 100)
    baseline = round(_BAR * one.baseline_weight / 100)
    bar = "=" * (_BAR - canary - baseline) + "-" * baseline + "#" * canary
    beside = f" + {one.baseline_weight} % baseline" if one.baseline_weight else ""
    primary = f"{one.primary} {one.primary_weight} %{beside}"
    return f"{primary} [{bar}] {one.canary_weight} % {one.canary}"


def _step(step: detail.PlannedStep) -> tuple[str, ...]:
    waits = " (needs approval)" if step.approve else ""
    state = f"{progress.STEPS[step.state]}{waits}"
    return str(step.number), f"{step.weight} %", state, printing.moment(step.reached)


def _kept(each: detail.KeptRevision) -> str:
    return each.revision if each.label == each.revision else f"{each.revision} ({each.label})"


def _news(news: history.News) -> tuple[str, ...]:
    by = f" (by {news.by})" if news.by else ""
    return printing.moment(news.at), news.kind, f"{news.text}{by}"


def _essence(one: projection.Summary) -> tuple[object, ...]:
    return one.phase, one.sentence, one.primary_weight, one.canary, one.stable


def _listed(asked: Source, limit: int, where: str) -> Sequence[projection.Summary]:
    return asked.read(
        lambda session: requests.listed(session, limit, where=where)[0],
        lambda server: server.listed(projection.Summary, "/rollouts", limit, where),
    )


def _find(asked: Source, name: str) -> detail.Detail:
    return asked.read(
        lambda session: requests.read(session, name, datetime.now(UTC)),
        lambda server: server.get(detail.Detail, f"/rollouts/{quote(name)}"),
    )


async def _steer(
    engine: service.Engine, name: str, action: Action, command_id: messages.CommandId
) -> messages.Receipt:
    asked = actions.ActionRequest(action.verb, action.by, action.why, action.revision)
    stream = await engine.read(lambda session: requests.find(session, name))
    with requests.in_place():
        return await engine.submit(stream.name, actions.command(asked), command_id)


def _history(told: detail.Detail) -> Sequence[PastRun]:
    return [
        PastRun(
            number=run.number,
            version=run.target,
            revision=run.revision,
            started=run.started,
            ended=run.ended,
            outcome=run.ending,
            why="; ".join(filter(None, (run.why, run.end_why))),
        )
        for run in told.runs
    ]


ROLLOUT = Noun(
    singular="rollout",
    plural="rollouts",
    list=_listed,
    find=_find,
    heads=("ROLLOUT", "PHASE", "STABLE", "CANARY", "WEIGHT", "STEP", "SINCE", "WHY"),
    row=_row,
    show=show,
    line=line,
    summary=lambda found: found.rollout,
    essence=_essence,
    verbs=declared_verbs.VERBS,
    steer=_steer,
    manifest=manifest.WORKLOAD,
    progress=progress.progress,
    history=_history,
    logs=True,
)
