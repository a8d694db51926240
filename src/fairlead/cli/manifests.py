"""`fairlead operator manifests`: what installs the operator, for `kubectl apply -f -`."""

import re
from typing import Any

import click

from fairlead import __version__, errors
from fairlead.bootstrap import operator as wiring
from fairlead.cli import installed
from fairlead.console import printing
from fairlead.kubernetes.install import manifests as making
from fairlead.kubernetes.install import workload

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
IMAGE = f"fairlead:{__version__}"


@click.command()
@click.option(
    "--image",
    default=IMAGE,
    show_default=True,
    help="The image that the pods run, best by its digest: NAME@sha256:DIGEST.",
)
@click.option(
    "--namespace", default="fairlead", show_default=True, help="Where the operator itself lives."
)
@click.option(
    "--watch", default="", metavar="NAME", help="Reconcile this namespace; the operator's if unset."
)
@click.option(
    "--all-namespaces",
    "everywhere",
    is_flag=True,
    help="Reconcile all namespaces, with rights over the whole cluster.",
)
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
    help="Shards of all namespaces, each with its own Deployment and leader.",
)
@click.option(
    "--webhooks/--no-webhooks",
    default=True,
    show_default=True,
    help="Validate objects with an admission webhook.",
)
@click.option(
    "--policies/--no-policies",
    default=True,
    show_default=True,
    help="Install what lets targets rest unpaused between runs; needs Kubernetes 1.36.",
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
    help="Whether objects are admitted while no operator answers.",
)
def manifests(*, image: str, watch: str, database: str, **given: Any) -> None:
    """Print the objects that install the operator: kinds, account, rights, pod, policies."""
    if watch and given["everywhere"]:
        raise errors.Rejected(
            f"one namespace and all of them: {watch}", hint="use --watch or --all-namespaces"
        )
    # The rest is named as the options of an installation are.
    chosen = workload.Options(image, watched=watch, database=_secret(database), **given)
    _check_image(image)
    click.echo(
        making.text(making.documents(wiring.with_kinds(installed.installation()).kinds, chosen)),
        nl=False,
    )


def _secret(text: str) -> tuple[str, str] | None:
    if not text:
        return None
    name, _, key = text.partition("/")
    if not name or not key:
        raise errors.Rejected(f"not a Secret and a key in it: {text}", hint="write NAME/KEY")
    return name, key


def _check_image(image: str) -> None:
    """A name that means another image tomorrow is refused, one that could is told."""
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    if digest and not _DIGEST.fullmatch(digest):
        raise errors.Rejected(
            f"not the digest of an image: {digest[:80]}", hint="write NAME@sha256:DIGEST"
        )
    if not digest and tag in ("", "latest"):
        raise errors.Rejected(
            f"image without a version may change at any time: {image}",
            hint="name a version, or better its digest: NAME@sha256:DIGEST",
        )
    if not digest:
        printing.talk(f"a tag can be moved to another image, a digest cannot: {image}")
