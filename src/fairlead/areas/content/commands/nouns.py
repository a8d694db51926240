"""Releases of content as the terminal shows them: the list, one of them closely, each change."""

from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import quote

import click

from fairlead.areas.content import requests
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.domain.release.declared_verbs import VERBS
from fairlead.areas.content.domain.release.draft import stream
from fairlead.areas.content.domain.release.view import Summary
from fairlead.console import printing
from fairlead.console.clients import Source
from fairlead.console.nouns import Action, Noun
from fairlead.engine import messages, service

_NEWS = 15


def show(told: requests.Detail) -> None:
    one = told.release
    printing.pairs(
        [
            ("release", one.name),
            ("phase", one.phase),
            ("now", one.sentence),
            *([("waiting", told.unserved)] if told.unserved else []),
            ("stable", one.stable or "none"),
            ("canary", f"{one.canary}, {one.share} %" if one.canary else "none"),
            ("proposed", one.terms or "none"),
            ("revision", one.revision or "none"),
            ("last run", one.outcome or "none"),
            ("verbs", ", ".join(told.verbs) or "none"),
        ]
    )
    steps = [(f"{each.share} %", f"{each.bake_seconds:g} s", each.state) for each in told.steps]
    _table("STEPS", ("SHARE", "BAKE", "STATE"), steps)
    checks = [(each.name, str(each.measured), each.reason) for each in told.checks]
    _table("CHECKS", ("CHECK", "MEASURED", "REASON"), checks)
    news = [_news(each) for each in told.news[:_NEWS]]
    _table("HISTORY", ("AT", "WHAT", "TEXT"), news)


def line(one: Summary) -> str:
    parts = (printing.moment(one.updated), one.name, one.phase, one.sentence)
    return "  ".join(parts)


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    if lines:
        click.echo("")
        click.echo(printing.shown(title))
        printing.columns(heads, lines)


def _news(each: requests.News) -> tuple[str, ...]:
    by = f" (by {each.by})" if each.by else ""
    return printing.moment(each.at), each.kind, f"{each.text}{by}"


def _row(one: Summary) -> tuple[str, ...]:
    share = f"{one.share} %" if one.canary else "-"
    return one.name, one.phase, one.stable, one.canary or "-", share, one.proposed or "-", one.why


def _listed(asked: Source, limit: int, where: str) -> Sequence[Summary]:
    return asked.read(
        lambda session: requests.listed(session, limit, where),
        lambda server: server.listed(Summary, "/releases", limit, where),
    )


def _find(asked: Source, name: str) -> requests.Detail:
    return asked.read(
        lambda session: requests.read(session, name, datetime.now(UTC)),
        lambda server: server.get(requests.Detail, f"/releases/{quote(name)}"),
    )


async def _steer(
    engine: service.Engine, name: str, action: Action, command_id: messages.CommandId
) -> messages.Receipt:
    await engine.read(lambda session: requests.find(session, name))
    asked = view.command(action.verb, action.by, action.why, action.revision)
    return await engine.submit(stream(name), asked, command_id)


RELEASE = Noun(
    singular="release",
    plural="releases",
    list=_listed,
    find=_find,
    heads=("RELEASE", "PHASE", "STABLE", "CANARY", "SHARE", "PROPOSED", "WHY"),
    row=_row,
    show=show,
    line=line,
    summary=lambda found: found.release,
    essence=lambda one: (one.phase, one.sentence),
    verbs=VERBS,
    steer=_steer,
)
