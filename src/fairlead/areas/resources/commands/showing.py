"""`fairlead resources show`: what the API shows of a resource, with what is joined to it."""

import asyncio

import click

from fairlead import errors
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources.commands import importing
from fairlead.areas.resources.domain import requests
from fairlead.areas.resources.domain.model import Json
from fairlead.areas.resources.finding import Finder
from fairlead.console import options, printing


@click.command()
@click.argument("id_", metavar="ID")
@importing.of_type
@options.output
def show(id_: str, type_: str | None, *, as_json: bool) -> None:
    """Print all that the API shows of a resource, without its secrets.

    What further calls tell is joined to it; one that fails is a warning.
    """
    observed, warnings = asyncio.run(_shown(id_, type_))
    if not as_json:
        click.get_current_context().meta[printing.AS_YAML] = True
    printing.document(observed)
    for each in warnings:
        printing.talk(f"not joined: {each}")


async def _shown(id_: str, type_: str | None) -> tuple[Json, list[str]]:
    model, made = importing.model(id_, type_), hosts.host(options.settings())
    async with made.arm.open():
        finder = Finder(made.arm, model)
        observed = hosts.shown(await finder.at(id_), id_)
        if observed is None:
            raise errors.NotFound(f"no such resource: {id_}", hint="check its id, and who asks")
        observed, warnings = await finder.joined(id_, observed)
    request = requests.Request("PUT", id_, [], observed)
    return requests.shown(model, request).body or {}, warnings
