"""`fairlead operator manifests`: what installs the operator, for `kubectl apply -f -`."""

from typing import Literal

import click

from fairlead import __version__, errors
from fairlead.adapters.kubernetes import manifests as making
from fairlead.adapters.kubernetes import workload
from fairlead.cli import options

IMAGE = f"fairlead:{__version__}"


@click.command()
@click.option("--image", default=IMAGE, show_default=True, help="The image that the pods run.")
@click.option(
    "--namespace", default="fairlead", show_default=True, help="Where the operator itself lives."
)
@click.option("--watch", default="", metavar="NAME", help="Look after this namespace only.")
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many pods; one leads, the others wait.",
)
@click.option(
    "--database", default="", metavar="SECRET/KEY", help="Take the store's URL from this Secret."
)
@click.option(
    "--shards",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Parts of all namespaces, each with its own Deployment and leader.",
)
@click.option(
    "--webhooks/--no-webhooks",
    default=True,
    show_default=True,
    help="Let the operator review objects on their way in.",
)
@click.option(
    "--secrets/--no-secrets",
    default=True,
    show_default=True,
    help="Let the operator read Secrets, so that a changed one starts a run.",
)
@click.option(
    "--failure-policy",
    type=click.Choice(["Ignore", "Fail"]),
    default="Ignore",
    show_default=True,
    help="What happens to objects while no operator answers.",
)
def manifests(
    *,
    watch: str,
    database: str,
    failure_policy: Literal["Ignore", "Fail"],
    webhooks: bool,
    secrets: bool,
    **given: str,
) -> None:
    """Print the objects that install the operator: kinds, account, rights, pod, policies."""
    chosen = workload.Options(
        **given,  # type: ignore[arg-type]  # click has made numbers of two
        watched=watch,
        database=_secret(database),
        webhooks=webhooks,
        secrets=secrets,
        failure_policy=failure_policy,
    )
    click.echo(making.text(making.documents(options.cast().kinds, chosen)), nl=False)


def _secret(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    name, _, key = text.partition("/")
    if not name or not key:
        raise errors.Rejected(f"not a Secret and a key in it: {text}", hint="write NAME/KEY")
    return name, key
