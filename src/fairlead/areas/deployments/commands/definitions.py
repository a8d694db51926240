"""Clusters, environments and push targets in the terminal, and the files that `deploy` stores."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from fairlead import errors
from fairlead.areas.deployments.commands import nouns
from fairlead.areas.deployments.domain import declared_verbs, definition, schedule
from fairlead.areas.deployments.registry import definitions
from fairlead.areas.deployments.registry.definitions import Entry, Kind
from fairlead.console import printing
from fairlead.console.clients import Source
from fairlead.console.nouns import Action, Declared, Manifest, Noun, Progress
from fairlead.engine import messages, service, visibility


def _noun(kind: Kind[Any]) -> Noun:
    def find(asked: Source, name: str) -> visibility.StreamView:
        view = asked.stream(kind.stream(name))
        if definitions.entry(kind, view) is None:
            raise errors.NotFound(f"{kind.name} was removed: {name}", hint="store it again")
        return view

    listed = nouns.listing(schedule.MACHINES[kind.name])
    return Noun(
        singular=kind.name,
        plural=kind.plural,
        list=lambda asked, limit, where: listed(asked, limit, definitions.present(where)),
        find=find,
        heads=("NAME", "VERSION", "BY", "WHAT"),
        row=lambda view: _row(kind, view),
        show=lambda view: _show(kind, view),
        line=lambda view: "  ".join(_row(kind, view)),
        key=nouns.key,
        verbs=declared_verbs.REMOVE,
        steer=_steering(kind),
        # What is stored is stored at once: `deploy --wait` has nothing to wait for.
        progress=lambda _view, _revision: Progress("done", "stored", "", ()),
        manifest=Manifest(f"/{kind.plural}", _reading(kind), kind.starter),
    )


def _reading(kind: Kind[Any]) -> Callable[[Any, Path], Declared]:
    def read(content: Any, _folder: Path) -> Declared:
        made = kind.read(content)
        whole = msgspec.to_builtins(made)
        return Declared(kind.key(made), f"{kind.name} {kind.key(made)}", whole, whole)

    return read


def _steering(kind: Kind[Any]) -> Any:
    async def steer(
        engine: service.Engine, name: str, action: Action, command_id: messages.CommandId
    ) -> messages.Receipt:
        await engine.read(lambda session: definitions.check_removable(session, kind, name))
        return await engine.submit(kind.stream(name), definition.Remove(action.by), command_id)

    return steer


def _entry(kind: Kind[Any], view: visibility.StreamView) -> Entry[Any]:
    found = definitions.entry(kind, view)
    assert found is not None, "removed ones are left out of lists"
    return found


def _row(kind: Kind[Any], view: visibility.StreamView) -> tuple[str, ...]:
    found = _entry(kind, view)
    content = msgspec.to_builtins(found.content)
    refs = ", ".join([*content.get("branches", ()), *content.get("tags", ())])
    when = " ".join(filter(None, (content.get("cron", ""), content.get("time_zone", ""))))
    what = " ".join(filter(None, (content.get("repository", ""), refs, when)))
    return found.name, str(found.version), found.by, what or content.get("cluster_name") or "-"


def _show(kind: Kind[Any], view: visibility.StreamView) -> None:
    found = _entry(kind, view)
    printing.pairs([(kind.name, found.name), ("version", str(found.version)), ("by", found.by)])
    click.echo("")
    shown = yaml.safe_dump(msgspec.to_builtins(found.content), sort_keys=False, allow_unicode=True)
    for line in shown.splitlines():
        click.echo(printing.shown(line))


CLUSTER_NOUN = _noun(definitions.CLUSTERS)
ENVIRONMENT_NOUN = _noun(definitions.ENVIRONMENTS)
SCHEDULE_NOUN = _noun(definitions.SCHEDULES)
PUSH_TARGET_NOUN = _noun(definitions.PUSH_TARGETS)
