"""The verbs that areas declare, as commands: one for each, for whatever has it.

They go to the control plane that the settings name, or through the same door into the store of
this machine; either way a verb out of place changes nothing and says what would work.
"""

import getpass
import secrets
import sys
from collections.abc import Awaitable, Sequence
from typing import Any
from urllib.parse import quote

import click
import msgspec

from fairlead import errors
from fairlead.access import intake
from fairlead.console import completing, local_engine, options, printing
from fairlead.console.nouns import Action, Noun
from fairlead.engine import messages, service
from fairlead.values import Verb

_MEANT = "did you mean"
_named = click.argument("name", shell_complete=completing.names)
_revision = click.argument("revision", required=False, default="")
_id = click.option(
    "--id", "id_", metavar="ID", help="An id for this request; sent twice, it takes effect once."
)
_why = click.option("--why", default="", metavar="TEXT", help="The reason, shown in the history.")
_yes = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def command(verb: Verb) -> click.Command:
    """The verb as a command of the program, with the options that its declaration asks for."""

    def run(name: str, id_: str | None, as_json: bool, **given: Any) -> None:  # noqa: FBT001 - click hands options over by name
        action = Action(verb.name, _whoever(), given.get("why", ""), given.get("revision", ""))
        if verb.confirm is not None:
            revision = action.revision or "the last good version"
            question = verb.confirm.question.format(name=name, revision=revision)
            _be_sure(verb, name, question, yes=given["yes"])
        _steer(verb, name, action, id_, as_json=as_json)

    made = _yes(run) if verb.confirm is not None else run
    made = _why(made) if verb.takes_reason else made
    made = _id(options.output(made))
    made = _revision(made) if verb.takes_revision else made
    return click.command(verb.name, help=verb.usage)(_named(made))


def _whoever() -> str:
    """This machine's user, for the history; a server knows the caller by the token."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return intake.LOCAL.name


def _be_sure(verb: Verb, name: str, question: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        # A script that says what it wants is not asked: nobody would answer. But what has no way
        # back is not taken from a script whose input merely ended.
        if verb.deletes:
            hint = f"fairlead {verb.name} {name} --yes"
            raise errors.Rejected(f"not confirmed: {question}", hint=hint)
        return
    if not click.confirm(question, err=True):
        printing.talk("nothing changed")
        raise click.Abort


def _steer(verb: Verb, name: str, action: Action, id_: str | None, *, as_json: bool) -> None:
    command_id = messages.command_id(f"cli {secrets.token_hex(16)}" if id_ is None else id_)
    able = [noun for noun in options.installation().nouns() if verb.name in noun.verbs]
    noun, name = named_thing(name, able, verb.name)
    words = {"why": action.why, "revision": action.revision}
    thing = f"/{noun.plural}/{quote(name)}"
    receipt = local_engine.write(
        lambda engine: _locally(engine, noun, name, action, command_id),
        lambda server: server.steer(thing, action.verb, words, command_id),
    )
    key = receipt.stream.partition("/")[2]
    if verb.deletes:
        _show_deleted(noun, receipt, key, as_json=as_json)
        return
    with options.source() as asked:
        told = noun.summary(noun.find(asked, key))
    _show(noun, receipt, told, as_json=as_json)


def named_thing(name: str, able: Sequence[Noun], verb: str) -> tuple[Noun, str]:
    """What NAME, or NOUN/NAME, stands for, among what has the verb."""
    word, slash, rest = name.partition("/")
    for noun in able:
        if slash and word in noun.words:
            return noun, rest
    if not able:
        raise errors.NotFound(f"nothing here has this verb: {verb}", hint="see fairlead --help")
    if len(able) == 1:
        return able[0], name
    refused: list[errors.NotFound] = []
    with options.source() as asked:
        for noun in able:
            try:
                noun.find(asked, name)
            except errors.NotFound as error:
                refused.append(error)
            else:
                return noun, name
    for each in refused:
        if each.hint.startswith(_MEANT):
            raise each
    known = ", ".join(noun.plural for noun in able)
    raise errors.NotFound(f"no such name: {name[:200]}", hint=f"it may be one of: {known}")


def _locally(
    engine: service.Engine, noun: Noun, name: str, action: Action, command_id: messages.CommandId
) -> Awaitable[messages.Receipt]:
    if noun.steer is None:
        raise errors.Rejected(
            f"{noun.plural} are steered through a server: {name[:200]}", hint="set FAIRLEAD_SERVER"
        )
    return noun.steer(engine, name, action, command_id)


def _show_deleted(noun: Noun, receipt: messages.Receipt, key: str, *, as_json: bool) -> None:
    if as_json:
        answer = {"events": receipt.events, "duplicate": receipt.duplicate, "deleted": key}
        printing.document(answer)
    else:
        click.echo(printing.shown(f"deleted: {noun.singular} {key}"))


def _show(noun: Noun, receipt: messages.Receipt, told: Any, *, as_json: bool) -> None:
    if as_json:
        printing.document(
            {
                "events": receipt.events,
                "duplicate": receipt.duplicate,
                noun.singular: msgspec.to_builtins(told),
            }
        )
        return
    what = "taken" if receipt.events else "nothing changed"
    printing.talk("already applied" if receipt.duplicate else what)
    click.echo(printing.shown(noun.line(told)))
