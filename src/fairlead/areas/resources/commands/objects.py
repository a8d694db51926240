"""`fairlead resources crd`: what installs a typed kind in a cluster."""

import dataclasses

import click

from fairlead.areas.resources.catalogue import Catalogue
from fairlead.areas.resources.host import CATALOGUE
from fairlead.areas.resources.kubernetes import generated
from fairlead.areas.resources.kubernetes.kinds import CloudKinds
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.console import options, printing


@click.command()
@click.argument("type_", metavar="TYPE[@VERSION]")
@options.output
def crd(type_: str, *, as_json: bool) -> None:
    """Print the CustomResourceDefinition of a kind for one type, for `kubectl apply -f -`.

    An operator serves it that FAIRLEAD_RESOURCES_KINDS names the type to.
    """
    chosen = options.settings()
    found = Catalogue(chosen.store.state_dir / CATALOGUE).find(type_)
    wanted = ResourcesSettings(resources_kinds=f"{found.type}@{found.version}")
    *_, kind = CloudKinds().settle(dataclasses.replace(chosen, areas=(wanted,)))
    if not as_json:
        click.get_current_context().meta[printing.AS_YAML] = True
    printing.document(generated.definition(kind, found))
