"""Rollouts as the terminal shows them: the list, one of them closely, and each change of it."""

import time
from collections.abc import Iterator, Sequence

import click
import msgspec

from fairlead.cli import printing, sources
from fairlead.domain.rollouts import chronicle, detail, rows

WORDS = ("rollout", "rollouts")
_BAR = 30
_NEWS = 12
_MOST = 500
# Quick enough for eyes; what was too quick for them stands in the history.
_PAUSE = 0.5
_STEPS = {
    "done": "done",
    "moving": "on the way",
    "here": "here now",
    "ahead": "ahead",
    "skipped": "skipped",
    "stopped": "given up here",
}


def get(asked: sources.Source, name: str | None, limit: int, *, as_json: bool) -> None:
    """All of them, or one."""
    if name is not None:
        show(asked.rollout(name), as_json=as_json)
        return
    found = asked.rollouts(limit)
    if as_json:
        printing.document(msgspec.to_builtins(found))
    elif found:
        heads = ("ROLLOUT", "PHASE", "STABLE", "CANARY", "WEIGHT", "STEP", "SINCE", "WHY")
        printing.columns(heads, [_row(one) for one in found])
    else:
        printing.talk("no rollouts")


def watch(asked: sources.Source, name: str | None, *, as_json: bool) -> None:
    """A line for each rollout as it stands, and one whenever what it says changes."""
    printing.talk("watching; Ctrl-C ends it")
    for one in _changes(asked, name):
        if as_json:
            printing.line(msgspec.to_builtins(one))
        else:
            click.echo(printing.shown(line(one)))


def show(told: detail.Detail, *, as_json: bool = False) -> None:
    if as_json:
        printing.document(msgspec.to_builtins(told))
        return
    one = told.rollout
    printing.pairs(
        [
            ("rollout", one.title),
            ("phase", one.phase),
            ("now", one.sentence),
            ("weights", _weights(one)),
            ("stable", one.stable),
            ("canary", one.canary or "none"),
            ("last run", f"{one.outcome}: {one.why}" if one.outcome else "none has ended"),
            ("verbs", ", ".join(told.verbs) or "none"),
            ("kept", ", ".join(_kept(each) for each in told.kept) or "none"),
        ]
    )
    _table("STEPS", ("STEP", "SHARE", "STATE", "REACHED"), [_step(step) for step in told.plan])
    checks = [(each.name, each.phase, str(each.measured), each.reason) for each in told.checks]
    _table("CHECKS", ("CHECK", "VERDICT", "ASKED", "REASON"), checks)
    if told.runs:
        run = told.runs[0]
        news = [_news(each) for each in run.news[:_NEWS]]
        _table(f"HISTORY OF {run.target}", ("AT", "WHAT", "TEXT"), news)


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    if lines:
        click.echo("")
        click.echo(printing.shown(title))
        printing.columns(heads, lines)


def _row(one: rows.Summary) -> tuple[str, ...]:
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


def line(one: rows.Summary) -> str:
    parts = (printing.moment(one.updated), one.title, one.phase, _weights(one), one.sentence)
    return "  ".join(parts)


def _weights(one: rows.Summary) -> str:
    if not one.canary:
        return f"{one.primary} {one.primary_weight} %"
    canary = round(_BAR * one.canary_weight / 100)
    baseline = round(_BAR * one.baseline_weight / 100)
    bar = "=" * (_BAR - canary - baseline) + "-" * baseline + "#" * canary
    beside = f" + {one.baseline_weight} % baseline" if one.baseline_weight else ""
    primary = f"{one.primary} {one.primary_weight} %{beside}"
    return f"{primary} [{bar}] {one.canary_weight} % {one.canary}"


def _step(step: detail.PlannedStep) -> tuple[str, ...]:
    waits = " (then a person)" if step.approve else ""
    state = f"{_STEPS[step.state]}{waits}"
    return str(step.number), f"{step.share} %", state, printing.moment(step.reached)


def _kept(each: detail.KeptRevision) -> str:
    return each.revision if each.label == each.revision else f"{each.revision} ({each.label})"


def _news(news: chronicle.News) -> tuple[str, ...]:
    by = f" (by {news.by})" if news.by else ""
    return printing.moment(news.at), news.kind, f"{news.text}{by}"


def _changes(asked: sources.Source, name: str | None) -> Iterator[rows.Summary]:
    told: dict[str, tuple[object, ...]] = {}
    while True:
        now = asked.rollouts(_MOST) if name is None else [asked.rollout(name).rollout]
        for one in reversed(now):
            if told.get(one.name) != _essence(one):
                told[one.name] = _essence(one)
                yield one
        time.sleep(_PAUSE)


def _essence(one: rows.Summary) -> tuple[object, ...]:
    return one.phase, one.sentence, one.primary_weight, one.canary, one.stable
