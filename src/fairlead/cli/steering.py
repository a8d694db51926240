"""The verbs of a rollout: approve, promote, pause, resume, abort, retry, rollback.

They go to the control plane that the settings name, or through the same door into the store of
this machine; either way a verb out of place changes nothing and says what would work.
"""

import getpass
import secrets
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from fairlead.cli import errands, options, printing, rollouts, sources
from fairlead.domain.rollouts import choices, detail
from fairlead.engine import messages, service
from fairlead.intents import intake
from fairlead.intents import requests as door

F = TypeVar("F", bound=Callable[..., Any])

_named = click.argument("name")
_id = click.option(
    "--id", "id_", metavar="ID", help="This request's own id; the same one twice is taken once."
)
_why = click.option("--why", default="", metavar="TEXT", help="Told in the history.")
_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def _common(command: F) -> F:
    return _named(_id(options.output(command)))


@click.command()
@_common
def approve(name: str, id_: str | None, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Let the step of rollout NAME go on that waits for a person."""
    _steer(name, _wish("approve"), id_, as_json=as_json)


@click.command()
@_common
@_yes
def promote(name: str, id_: str | None, yes: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Give the new version of NAME all traffic, without the steps and checks that are left."""
    _be_sure(f"Give {name} all traffic now, without further steps and checks?", yes=yes)
    _steer(name, _wish("promote"), id_, as_json=as_json)


@click.command()
@_common
@_why
def pause(name: str, id_: str | None, why: str, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Hold rollout NAME: it takes no step up, and may still go home."""
    _steer(name, _wish("pause", why=why), id_, as_json=as_json)


@click.command()
@_common
def resume(name: str, id_: str | None, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Let rollout NAME go on after a pause; its checks are asked anew."""
    _steer(name, _wish("resume"), id_, as_json=as_json)


@click.command()
@_common
@_why
@_yes
def abort(name: str, id_: str | None, why: str, yes: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Bring all traffic of rollout NAME home, and give the new version up."""
    _be_sure(f"Bring all traffic of {name} home?", yes=yes)
    _steer(name, _wish("abort", why=why), id_, as_json=as_json)


@click.command()
@_common
def retry(name: str, id_: str | None, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Try the version of rollout NAME again that was taken back."""
    _steer(name, _wish("retry"), id_, as_json=as_json)


@click.command()
@_named
@click.argument("revision")
@_id
@_yes
@options.output
def rollback(name: str, revision: str, id_: str | None, yes: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Bring REVISION of rollout NAME back at once, without steps.

    "fairlead get rollout NAME" lists the revisions that are kept.
    """
    _be_sure(f"Give {revision} all traffic of {name}, without steps?", yes=yes)
    _steer(name, _wish("rollback", revision=revision), id_, as_json=as_json)


def _wish(verb: str, why: str = "", revision: str = "") -> choices.Wish:
    return choices.Wish(verb, _whoever(), why, revision)


def _whoever() -> str:
    """This machine's user, for the history; a server knows the caller by the token."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return intake.LOCAL.name


def _be_sure(question: str, *, yes: bool) -> None:
    # A script that says what it wants is not asked: nobody would answer.
    if yes or not sys.stdin.isatty():
        return
    if not click.confirm(question, err=True):
        printing.talk("left as it is")
        raise click.Abort


def _steer(name: str, wish: choices.Wish, id_: str | None, *, as_json: bool) -> None:
    command_id = messages.command_id(f"cli {secrets.token_hex(16)}" if id_ is None else id_)
    chosen = options.settings()
    server = sources.server(chosen.web)
    if server is None:
        receipt = errands.with_engine(lambda engine: _ask(engine, name, wish, command_id))
    else:
        receipt = server.steer(name, wish, command_id)
    with sources.source(chosen) as asked:
        told = asked.rollout(receipt.stream.partition("/")[2])
    _show(receipt, told, as_json=as_json)


async def _ask(
    engine: service.Engine, name: str, wish: choices.Wish, command_id: messages.CommandId
) -> messages.Receipt:
    stream = await engine.read(lambda session: door.find(session, name))
    with door.in_place():
        return await engine.submit(stream.name, choices.command(wish), command_id)


def _show(receipt: messages.Receipt, told: detail.Detail, *, as_json: bool) -> None:
    if as_json:
        printing.document(
            {
                "events": receipt.events,
                "duplicate": receipt.duplicate,
                "rollout": msgspec.to_builtins(told.rollout),
            }
        )
        return
    what = "taken" if receipt.events else "nothing changed"
    printing.talk("taken before" if receipt.duplicate else what)
    click.echo(printing.shown(rollouts.line(told.rollout)))
