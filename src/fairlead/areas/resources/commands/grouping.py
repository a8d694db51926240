"""`fairlead resources import-group`: a file for each resource in a place, then kept so."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

import click
import yaml

from fairlead import errors
from fairlead.areas.resources import groups
from fairlead.areas.resources import host as hosts
from fairlead.areas.resources import plan as plans
from fairlead.areas.resources.catalogue import Catalogue
from fairlead.areas.resources.commands import importing, reconcile
from fairlead.areas.resources.domain.importing import Imported, imported
from fairlead.areas.resources.domain.reconcile.messages import Apply
from fairlead.areas.resources.groups import Found, Walk
from fairlead.areas.resources.settings import ResourcesSettings
from fairlead.console import options, printing

_PLAIN = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 180


@click.command("import-group")
@click.argument("id_", metavar="ID")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@reconcile.patience
def import_group(id_: str, folder: Path, timeout: float) -> None:
    """Write a file for each resource below ID, such as a resource group, and keep them so.

    Of the types that were ingested, with all that stand in each other; planning a file changes
    nothing. What has a file in FOLDER, or is kept already, is left as it is.
    """
    place, chosen = id_.rstrip("/"), options.local_settings()
    catalogue = Catalogue(chosen.store.state_dir / hosts.CATALOGUE)
    models = groups.newest(chosen, catalogue.entries, place)
    made = hosts.host(chosen)

    async def walk() -> tuple[list[Found], list[str]]:
        async with made.arm.open():
            return await Walk(made.arm, models).below(place)

    found, untold = asyncio.run(walk())
    folder.mkdir(parents=True, exist_ok=True)
    for each in found:
        seen = groups.without_children(each, found)
        _kept(each, imported(each.model, hosts.seal(chosen), _name(each), seen), folder, timeout)
    for why in untold:
        printing.talk(f"not listed: {why}")
    printing.talk(f"resources: {len(found):,}")


def _kept(one: Found, said: Imported, folder: Path, timeout: float) -> None:
    words = importing.words(one.model, one.id, said)
    wanted = plans.declared(one.model, plans.read(words))
    file = folder / f"{_file(one)}.yaml"
    if file.exists():
        printing.talk(f"left as it is: {file}")
        return
    file.write_text(yaml.safe_dump(words, sort_keys=False, allow_unicode=True))
    for path in said.differing:
        printing.talk(f"left out of {file}, as writing what is shown would change it: {path}")
    if importing.is_kept(one.id):
        printing.talk(f"kept as declared already: {one.id}")
        return
    try:
        folder_of_secrets = options.settings().of(ResourcesSettings).resources_secrets
        importing.check_secrets(said, hosts.Secrets(folder_of_secrets))
    except errors.NotFound as error:
        printing.talk(f"{error.message} of {file}; {error.hint}")
        return
    outcome = asyncio.run(reconcile.run(one.id, (Apply(wanted),), timeout))
    click.echo(str(file))
    for each in _sent(outcome.sent):
        printing.talk(f"changed meanwhile, so it was written: {each} {one.id}")
    reconcile.check(outcome)


def _sent(requests: Sequence[dict[str, object]]) -> list[str]:
    return [str(each["method"]) for each in requests]


def _name(one: Found) -> str:
    return one.id.rpartition("/")[2]


def _file(one: Found) -> str:
    """Of the names of what it stands in, too: two networks may have a subnet of one name."""
    parts = one.id.lower().rpartition("/providers/")[2] or one.id
    return _PLAIN.sub("-", parts.strip("/"))[-_LONGEST:]
