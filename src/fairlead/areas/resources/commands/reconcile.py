"""`fairlead resources plan|apply|delete`: what would be sent, and sending it.

Without a server: the machine runs in this process, on the store of the state folder, until the
resource is as declared. What is cut short goes on with the next run, or in `fairlead up`.
"""

import asyncio
import contextlib
import dataclasses
import secrets
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from fairlead import errors, validation
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources import plan as plans
from fairlead.areas.resources.domain import references, requests
from fairlead.areas.resources.domain.importing import filled_in, imported
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile import events, messages
from fairlead.areas.resources.domain.reconcile.draft import stream
from fairlead.areas.resources.domain.reconcile.messages import Declared, LastApplied
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.areas.resources.finding import Finder, Shown, outputs
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.console import clients, options, printing
from fairlead.console.files import Document
from fairlead.engine import service, visibility
from fairlead.engine.messages import CommandId, StreamName

_LOOK = timedelta(seconds=1)
_MOST_EVENTS = 1000
_SENDING = {events.WriteStarted.__name__, events.DeletionStarted.__name__}


@click.command()
@click.argument("file")
@click.option(
    "--observed", metavar="FILE", help="What the API shows, in a file; by default it is asked."
)
@options.output
def plan(file: str, observed: str | None, *, as_json: bool) -> None:
    """Show the request that would bring a resource to its file, with a reason for each change.

    Nothing is written. Secrets are left out of what is shown.
    """
    document, model, wanted = _declared(file)
    chosen = options.settings()
    secret = hosts.Secrets(chosen.of(ResourcesSettings).resources_secrets)
    with document.placed():
        properties = references.completed(wanted.properties, secret, _outputs(wanted))
        shown = asked(wanted) if observed is None else _in_file(observed)
        complete = dataclasses.replace(wanted, properties=properties)
        request = plans.plan(model, hosts.seal(chosen), complete, _last(wanted.id), shown)
    sent = [] if request is None else [requests.shown(model, request)]
    if as_json:
        printing.document({"requests": sent})
        return
    if not sent:
        click.echo("nothing to change")
    for each in sent:
        click.echo(f"{each.method} {each.url}")
        printing.columns(("PATH", "WHY"), [(one.path, one.why) for one in each.reasons])


def patience(command: Any) -> Any:
    return click.option(
        "--timeout",
        type=options.SPAN,
        default="30m",
        show_default=True,
        help="How long to wait; what is not done goes on with the next run.",
    )(command)


@click.command()
@click.argument("file")
@click.option(
    "--fill",
    is_flag=True,
    help="Write what the API chose for what the file leaves out into the file; its comments go.",
)
@patience
@options.output
def apply(file: str, timeout: float, *, fill: bool, as_json: bool) -> None:
    """Bring a resource to its file, and wait until the API shows it so.

    Sends what plan shows, and nothing else. The same file again sends what others changed since.
    """
    document, model, wanted = _declared(file)
    told = (messages.Apply(wanted), messages.Refresh())
    _report(asyncio.run(run(wanted.id, told, timeout)), wanted.id, as_json=as_json)
    observed = asked(wanted) if fill else None
    if observed is not None:
        chosen = imported(model, hosts.seal(options.settings()), "", observed).properties
        filled = filled_in(wanted.properties, references.without(chosen))
        said = {**document.content, "properties": filled}
        Path(file).write_text(yaml.safe_dump(said, sort_keys=False, allow_unicode=True))


@click.command()
@click.argument("file")
@patience
@options.output
def delete(file: str, timeout: float, *, as_json: bool) -> None:
    """Delete the resource that a file declares, if it was applied from here.

    One whose file says `deletion: retain` is left as it is, and forgotten.
    """
    _, _, wanted = _declared(file)
    told = (messages.Remove(),)
    _report(asyncio.run(run(wanted.id, told, timeout)), wanted.id, as_json=as_json)


def _declared(file: str) -> tuple[Document, Model, Declared]:
    document = Document.read(file)
    with document.placed():
        words = plans.read(document.content)
    model = hosts.model(options.settings(), words.wanted_type)
    with document.placed():
        return document, model, plans.declared(model, words)


def _in_file(file: str) -> Json | None:
    document = Document.read(file)
    if document.content is None:
        return None
    with document.placed():
        return validation.convert(
            document.content, dict[str, Any], about="what GET of the resource answers"
        )


def asked(wanted: Declared) -> Json | None:
    """What the API has of it, where it can be told which one that is."""
    made = hosts.host(options.settings())
    model = made.ports.model(wanted.type, wanted.version)

    async def ask() -> Shown | messages.Failure:
        async with made.arm.open():
            return await Finder(made.arm, model).shown(wanted, _last(wanted.id))

    return hosts.shown(asyncio.run(ask()), wanted.id)


def _outputs(wanted: Declared) -> Mapping[references.Output, Any]:
    """What it takes from others."""
    if not any(references.outputs(wanted.properties)):
        return {}
    made = hosts.host(options.settings())

    async def ask() -> Mapping[references.Output, Any] | messages.Failure:
        async with made.arm.open():
            return await outputs(made.arm, made.ports.model, wanted)

    found = asyncio.run(ask())
    if isinstance(found, messages.Failure):
        raise errors.Unavailable(found.message, hint="apply what it takes from first")
    return found


def known(id_: str) -> visibility.StreamView | None:
    """The resource as it is kept here; None where it was never declared from here."""
    installation, chosen = options.installation(), options.settings()
    try:
        kept = clients.existing(installation, chosen.store)
    except errors.NotFound:
        return None
    with contextlib.closing(kept.open()) as session:
        return visibility.find(session, stream(id_))


def _last(id_: str) -> LastApplied:
    """What a run from here remembers of it; nothing where there was none."""
    found = known(id_)
    return msgspec.convert(found.data["last"], LastApplied) if found else LastApplied()


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    data: dict[str, Any]
    sent: Sequence[dict[str, Any]]


async def run(id_: str, told: Sequence[Any], seconds: float) -> Outcome:
    installation, chosen = options.installation(), options.local_settings()
    made = hosts.host(chosen)
    kept = installation.store(chosen.store)
    await asyncio.to_thread(kept.migrate)
    parts = service.Parts(kept, installation.machines, queues=made.queues)
    async with service.Engine(parts).running() as engine, made.open(engine):
        name, before = stream(id_), await _seen(engine, stream(id_))
        for command in told:
            unique = CommandId(f"cli {secrets.token_hex(16)}")
            await engine.submit(name, command, unique, queue=made.queue)
        try:
            async with asyncio.timeout(seconds):
                data = await _settled(engine, name)
        except TimeoutError as error:
            raise errors.Unavailable(
                f"not done within {seconds:g} s", hint="run it again: it goes on where it is"
            ) from error
        return Outcome(data, await _sent(engine, name, before))


async def _settled(engine: service.Engine, name: StreamName) -> dict[str, Any]:
    """Its state once it rests: as declared, gone, or failed."""
    said = ""
    with engine.watch() as signal:
        while True:
            view = await engine.read(lambda session: visibility.find(session, name))
            data: dict[str, Any] = view.data if view else {"phase": Phase.IDLE.value}
            line = ": ".join(part for part in (data["phase"], _why(data)) if part)
            if line != said:
                said = line
                printing.talk(line)
            if data["phase"] in (Phase.READY, Phase.GONE, Phase.FAILED, Phase.IDLE):
                return data
            await engine.wait(signal, _LOOK)


def _why(data: dict[str, Any]) -> str:
    return str((data.get("failure") or {}).get("message", ""))


async def _seen(engine: service.Engine, name: StreamName) -> int:
    view = await engine.read(lambda session: visibility.find(session, name))
    return view.version if view else 0


async def _sent(engine: service.Engine, name: StreamName, after: int) -> list[dict[str, Any]]:
    """The requests that were decided on since then."""
    found = await engine.read(
        lambda session: visibility.events(session, name, after=after, limit=_MOST_EVENTS)
    )
    plans_ = [each.data.get("plan") for each in found if each.type in _SENDING]
    deletion = {"method": "DELETE", "reasons": []}
    return [
        {"method": each["method"], "reasons": each["reasons"]} if each else deletion
        for each in plans_
    ]


def _report(outcome: Outcome, id_: str, *, as_json: bool) -> None:
    phase = outcome.data["phase"]
    if as_json:
        printing.document({"resourceId": id_, "phase": phase, "requests": outcome.sent})
    elif not outcome.sent:
        click.echo("nothing to change")
    for each in outcome.sent if not as_json else ():
        click.echo(f"{each['method']} {id_}")
        rows = [(one["path"], one["why"]) for one in each["reasons"]]
        if rows:
            printing.columns(("PATH", "WHY"), rows)
    check(outcome)


def check(outcome: Outcome) -> None:
    """Rejected where it failed."""
    if outcome.data["phase"] == Phase.FAILED:
        hint = "change the file, or what stands in its way, and run it again"
        raise errors.Rejected(_why(outcome.data) or "it failed", hint=hint)
