"""`fairlead resources import`: the file of a resource that is there, which then is kept so."""

import asyncio
from typing import Any

import click

from fairlead import errors
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources import plan as plans
from fairlead.areas.resources.catalogue import Catalogue
from fairlead.areas.resources.commands import reconcile
from fairlead.areas.resources.domain import urls
from fairlead.areas.resources.domain.importing import Imported, imported
from fairlead.areas.resources.domain.model import Json, Model
from fairlead.areas.resources.domain.reconcile.messages import Apply, Declared
from fairlead.areas.resources.domain.reconcile.state import Phase
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.console import options, printing

_UNKNOWN = (Phase.IDLE, Phase.GONE)


def of_type(command: Any) -> Any:
    return click.option(
        "--type", "type_", metavar="TYPE[@VERSION]", help="By default the one whose URL it fits."
    )(command)


@click.command("import")
@click.argument("id_", metavar="ID")
@of_type
@reconcile.patience
@options.output
def import_(id_: str, type_: str | None, timeout: float, *, as_json: bool) -> None:
    """Print the file of a resource that is there, and keep it as that says from now on.

    The file has what may be written, with secrets by name; planning it changes nothing. Where a
    secret has to be written into its file first, the resource is not attached yet.
    """
    of = model(id_, type_)
    if is_kept(id_):
        raise errors.Conflict(
            f"it is kept as declared already: {id_}",
            hint="see it with fairlead get resource, and change its file",
        )
    observed = reconcile.asked(Declared(of.type.type, of.type.version, id_, {}))
    if observed is None:
        raise errors.NotFound(f"no such resource: {id_}", hint="check its id, and who asks")
    chosen = options.local_settings()
    found = imported(of, hosts.seal(chosen), id_.rpartition("/")[2], observed)
    said = words(of, id_, found)
    wanted = plans.declared(of, plans.read(said))
    if not as_json:
        click.get_current_context().meta[printing.AS_YAML] = True
    printing.document(said)
    for path in found.differing:
        printing.talk(f"left out, as writing what is shown would change it: {path}")
    check_secrets(found, hosts.Secrets(chosen.of(ResourcesSettings).resources_secrets))
    outcome = asyncio.run(reconcile.run(id_, (Apply(wanted),), timeout))
    for each in outcome.sent:
        printing.talk(f"changed meanwhile, so it was written: {each['method']} {id_}")
    reconcile.check(outcome)


def model(id_: str, type_: str | None) -> Model:
    """The one that is named, or the only one whose ids look so."""
    catalogue = Catalogue(options.settings().store.state_dir / hosts.CATALOGUE)
    if type_ is None:
        fitting = {each.type for each in catalogue.entries if urls.fits(each.url, id_)}
        if len(fitting) != 1:
            said = f"several types have such ids: {id_}" if fitting else f"of no known type: {id_}"
            near = f"name one with --type: {', '.join(sorted(fitting))}" if fitting else ""
            hint = near or "check the id; fairlead resources kinds lists the types"
            raise errors.NotFound(said, hint=hint)
        (type_,) = fitting
    of = hosts.model(options.settings(), type_)
    if not urls.fits(of.type.url, id_):
        raise errors.Rejected(f"not an id of {of.type.type}: {id_}", hint=f"as {of.type.url}")
    return of


def is_kept(id_: str) -> bool:
    """Whether it is declared from here already."""
    known = reconcile.known(id_)
    return known is not None and known.data["phase"] not in _UNKNOWN


def words(of: Model, id_: str, found: Imported) -> Json:
    """The file of it."""
    said: dict[str, Any] = {"kind": "cloud-resource", "type": of.type.type}
    said |= {"apiVersion": of.type.version, "resourceId": id_}
    return {**said, "properties": found.properties}


def check_secrets(found: Imported, secret: hosts.Secrets) -> None:
    """Before it is attached: without them it would wait."""
    for path, name in found.secrets.items():
        try:
            secret(name)
        except errors.NotFound as error:
            raise errors.NotFound(
                f"not attached, as a secret is missing: {path}",
                hint=f"{error.hint}; then apply the file",
            ) from error
