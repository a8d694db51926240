"""`fairlead resources …`: what APIs describe, read and shown."""

import time
from collections.abc import Mapping
from pathlib import Path

import click

from fairlead import errors, validation
from fairlead.areas.resources import catalogue, descriptions
from fairlead.areas.resources.catalogue import Catalogue
from fairlead.areas.resources.commands import grouping, importing, objects, reconcile, showing
from fairlead.areas.resources.domain.classes import Class, ClassifiedProperty, Overrides
from fairlead.areas.resources.domain.reading import ResourceType
from fairlead.areas.resources.host import CATALOGUE
from fairlead.console import options, printing
from fairlead.console.files import Document

_ABOUT = "a file of overrides: classes by type and path"


@click.group()
def resources() -> None:
    """Keep resources of any described API as declared."""


@resources.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option(
    "--tree",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder that references may not leave; by default the folder given, or that of"
    " the file.",
)
@click.option("--overrides", "file", metavar="FILE", help="Classes of properties that you know.")
def ingest(paths: tuple[Path, ...], tree: Path | None, file: str | None) -> None:
    """Read descriptions: Swagger 2.0 and OpenAPI 3, files or folders of them.

    What is found replaces what was found before. Nothing is fetched from hosts.
    """
    start = time.monotonic()
    found = descriptions.files(paths)
    root = tree or _root(paths)
    overrides = _overrides(file)
    if file is None and _is_known(found):
        printing.talk(f"nothing changed; files: {len(found):,}")
        return
    count = catalogue.write(_path(), descriptions.read(root, found, overrides), found)
    seconds = time.monotonic() - start
    printing.talk(f"types of resources: {count:,}; files: {len(found):,}; {seconds:.1f} s")


@resources.command()
@options.output
def kinds(*, as_json: bool) -> None:
    """List the types of resources that were ingested."""
    entries = Catalogue(_path()).entries
    if as_json:
        names = ("type", "version", "url", "verbs", "parent")
        printing.document([{name: getattr(each, name) for name in names} for each in entries])
        return
    rows = [(each.type, each.version, " ".join(each.verbs), each.parent or "") for each in entries]
    printing.columns(("TYPE", "VERSION", "VERBS", "PARENT"), rows)


@resources.command()
@click.argument("type_", metavar="TYPE[@VERSION]")
@options.output
def describe(type_: str, *, as_json: bool) -> None:
    """Show one type: its URL, its verbs, and the class of each property."""
    found = Catalogue(_path()).find(type_)
    if as_json:
        printing.document(found)
        return
    printing.pairs(_about(found))
    click.echo()
    rows = [
        (each.path, each.type, each.class_, f"{each.provenance}, {each.confidence}", _notes(each))
        for each in found.properties
    ]
    printing.columns(("PROPERTY", "TYPE", "CLASS", "FROM", "NOTES"), rows)


for _command in (
    reconcile.plan,
    reconcile.apply,
    reconcile.delete,
    importing.import_,
    grouping.import_group,
    showing.show,
    objects.crd,
):
    resources.add_command(_command)


def _about(found: ResourceType) -> list[tuple[str, str]]:
    said = [
        ("type", f"{found.type}@{found.version}"),
        ("url", found.url),
        ("verbs", " ".join(found.verbs)),
        ("parent", found.parent or "none"),
        ("long-running", ", ".join(f"{verb} ({via})" for verb, via in found.lro.items()) or "none"),
    ]
    return [*said, ("created by", f"POST {found.create}")] if found.create else said


def _notes(each: ClassifiedProperty) -> str:
    notes = ["PATCH"] * each.patch + ["secret"] * each.secret
    if each.list_key:
        notes.append(f"items by {', '.join(each.list_key)}")
    if each.enum:
        notes.append(" | ".join(str(value) for value in each.enum))
    return "; ".join(notes)


def _path() -> Path:
    return options.settings().store.state_dir / CATALOGUE


def _root(paths: tuple[Path, ...]) -> Path:
    folders = {path if path.is_dir() else path.parent for path in paths}
    if len(folders) > 1:
        raise errors.Rejected(
            "paths of several folders", hint="give the folder that holds them with --tree"
        )
    return folders.pop()


def _is_known(found: list[Path]) -> bool:
    try:
        return Catalogue(_path()).is_of(found)
    except (errors.NotFound, errors.Corrupt):
        return False


def _overrides(file: str | None) -> Mapping[str, Overrides]:
    if file is None:
        return {}
    document = Document.read(file)
    with document.placed():
        return validation.convert(document.content, dict[str, dict[str, Class]], about=_ABOUT)
