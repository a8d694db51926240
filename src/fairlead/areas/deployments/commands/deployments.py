"""`fairlead deployments start`: deploy a commit, branch or tag of what a push target names."""

import secrets
from collections.abc import Sequence
from typing import Any

import click

from fairlead.console import clients, options, printing


@click.group()
def deployments() -> None:
    """Start deployments."""


@deployments.command()
@click.argument("target", metavar="ENVIRONMENT/APPLICATION")
@click.option("--commit", default="", metavar="SHA", help="This commit, in full.")
@click.option("--branch", default="", metavar="NAME", help="The newest commit of a branch.")
@click.option("--tag", default="", metavar="NAME", help="The commit of a tag.")
@click.option("--flag", "flags", multiple=True, metavar="NAME", help="Such as quick or db_only.")
@click.option("--id", "id_", metavar="ID", help="Sent twice, the request takes effect once.")
@options.output
def start(*, flags: Sequence[str], id_: str | None, as_json: bool, **words: str) -> None:
    """Deploy a version of the application that a push target names.

    The target says which repository it comes from. The file is read at that commit by the control
    plane, as for a push: fairlead get trigger NAME shows what became of it.
    """
    if sum(map(bool, (words["commit"], words["branch"], words["tag"]))) != 1:
        raise click.UsageError("say one of --commit, --branch and --tag")
    asked = clients.control_plane(options.settings().web)
    # Made here, so that a request whose answer was lost can be repeated.
    content = {**words, "flags": list(flags), "id": id_ or f"cli {secrets.token_hex(16)}"}
    told = asked.post(dict[str, Any], "/triggers", content)
    if as_json:
        printing.document(told)
    else:
        click.echo(printing.shown(told["trigger"]))
        printing.talk(f"next: fairlead get trigger {told['trigger']}")
