"""`fairlead content release …`: propose a version, see who gets what, and how versions differ."""

import secrets
from typing import Any
from urllib.parse import quote

import click
import msgspec

from fairlead import errors
from fairlead.areas.content import description, requests
from fairlead.areas.content.domain.release import view
from fairlead.areas.content.release import rules
from fairlead.console import clients, options, printing, remote
from fairlead.console.files import Document


class _Answer(msgspec.Struct):
    release: view.Summary


class _Difference(msgspec.Struct):
    lines: list[str]


@click.group()
def release() -> None:
    """Release a version of a content, in steps that can be undone.

    Somebody else approves it: fairlead approve release/NAME REVISION. The other verbs are reject,
    advance, promote, pause, resume and abort; "fairlead get releases" shows where releases stand.
    """


@release.command()
@click.argument("file")
@click.argument("version")
@click.option("--why", required=True, metavar="TEXT", help="The reason, shown in the history.")
@click.option("--stable", default="", metavar="VERSION", help="What is deployed; at first only.")
@click.option("--emergency", is_flag=True, help="For everybody at once, without a canary.")
@click.option("--id", "id_", default="", metavar="ID", help="Sent twice, it takes effect once.")
@options.output
def propose(file: str, version: str, as_json: bool, **given: Any) -> None:  # noqa: FBT001 - click hands options over by name
    """Propose VERSION of the content whose release FILE describes.

    Nothing is deployed before somebody else approves it.
    """
    words = _read(file)
    id_ = given.pop("id_") or f"cli {secrets.token_hex(16)}"
    asked = rules.Proposed(words, version, id=id_, **given)
    told = _server().post(_Answer, "/releases", asked).release
    if as_json:
        printing.document(msgspec.to_builtins(told))
    else:
        click.echo(printing.shown(f"{told.name}  {told.phase}  {told.sentence}"))
        approval = f"fairlead approve release/{told.name} {told.revision}"
        printing.talk(f"somebody else approves it: {approval}")


@release.command()
@click.argument("name")
@click.argument("identities", nargs=-1, required=True, metavar="ID...")
@options.output
def who(name: str, identities: tuple[str, ...], as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show which version of NAME each ID gets."""
    with options.source() as asked:
        seen = [_seen(asked, name, each) for each in identities]
    if as_json:
        printing.document(msgspec.to_builtins(seen))
        return
    rows = [
        (each.identity, each.channel, each.version, "yes" if each.settled else "changing")
        for each in seen
    ]
    printing.columns(("ID", "CHANNEL", "VERSION", "SETTLED"), rows)


@release.command()
@click.argument("name")
def difference(name: str) -> None:
    """Show what the proposed or released version of NAME changes against stable."""
    for line in _server().get(_Difference, f"/releases/{quote(name)}/difference").lines:
        click.echo(printing.shown(line))


def _seen(asked: clients.Source, name: str, identity: str) -> view.Seen:
    where = f"/releases/{quote(name)}/who"
    return asked.read(
        lambda session: view.who(requests.find(session, name), identity),
        lambda server: server.get(view.Seen, where, {"id": identity}),
    )


def _read(file: str) -> dict[str, Any]:
    """The file with the content's own file in it, as the server knows no folder of ours."""
    document = Document.read(file)
    words = document.content
    if isinstance(words, dict) and isinstance(words.get("content"), str):
        inner = Document.read(str(document.folder / words["content"]))
        with inner.placed():
            content = description.read(inner.content, inner.folder)
        words = {**words, "content": msgspec.to_builtins(content)}
    with document.placed():
        rules.read(words)
    return dict(words)


def _server() -> remote.ServerSource:
    server = clients.server(options.settings().web)
    if server is None:
        raise errors.Rejected(
            "releases are proposed to a control plane, which performs them",
            hint="run fairlead up, and set FAIRLEAD_SERVER",
        )
    return server
