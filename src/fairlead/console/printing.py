"""Answers on standard output: JSON or YAML for programs, aligned columns for people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec
import yaml

from fairlead.engine import visibility

AS_YAML = "fairlead.as_yaml"
"""In the context's `meta`: whether -o asked for YAML."""


def document(value: Any) -> None:
    """One document, indented."""
    if _wants_yaml():
        click.echo(_yaml(value), nl=False)
    else:
        click.echo(msgspec.json.format(_encode(value), indent=2).decode())


def line(value: Any) -> None:
    """One line of JSON lines, or one of many YAML documents, seen by the reader at once."""
    if _wants_yaml():
        click.echo(f"---\n{_yaml(value)}", nl=False)
    else:
        click.echo(_encode(value).decode())


def talk(text: str) -> None:
    """What is said about the work, beside the data."""
    click.echo(shown(text), err=True)


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [heads, *([shown(cell) for cell in row] for row in rows)]
    widths = [max(len(each[place]) for each in lines) for place in range(len(heads))]
    for each in lines:
        cells = (cell.ljust(width) for cell, width in zip(each, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


def pairs(values: Sequence[tuple[str, str]]) -> None:
    width = max(len(name) for name, _ in values)
    for name, value in values:
        click.echo(f"{name.ljust(width)}  {shown(value)}")


def shown(text: str) -> str:
    """Text from a row, without what could move a reader's cursor."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def moment(at: datetime | None) -> str:
    return "" if at is None else at.isoformat(" ", "seconds").removesuffix("+00:00") + "Z"


def compact(data: Any) -> str:
    return _encode(data).decode()


def event_text(event: visibility.EventView) -> str:
    said = f"{moment(event.at)}  {event.stream}  {event.seq}  {event.type}  {compact(event.data)}"
    return shown(said)


def _wants_yaml() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(AS_YAML))


def _yaml(value: Any) -> str:
    text: str = yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True)
    return text


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
