"""Answers on standard output: JSON for programs, aligned columns for people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from fairlead.engine import library


def document(value: Any) -> None:
    """One JSON document, indented."""
    click.echo(msgspec.json.format(_encode(value), indent=2).decode())


def line(value: Any) -> None:
    """One line of JSON lines, seen by the reader at once."""
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


def event_text(event: library.EventView) -> str:
    said = f"{moment(event.at)}  {event.stream}  {event.seq}  {event.type}  {compact(event.data)}"
    return shown(said)


def stream_data(view: library.StreamView) -> dict[str, Any]:
    return {
        "number": view.number,
        "name": view.name,
        "machine": view.machine,
        "version": view.version,
        "state": view.state,
        "data": view.data,
        "created_at": view.created_at,
        "updated_at": view.updated_at,
        "ended_at": view.ended_at,
    }


def event_data(view: library.EventView) -> dict[str, Any]:
    return {
        "stream": view.stream,
        "seq": view.seq,
        "type": view.type,
        "version": view.version,
        "data": view.data,
        "cause": view.cause,
        "at": view.at,
        "place": str(view.place),
    }


def effect_data(view: library.EffectView) -> dict[str, Any]:
    return {
        "id": view.id,
        "stream": view.stream,
        "type": view.type,
        "data": view.data,
        "attempts": view.attempts,
        "due_at": view.due_at,
        "held": view.held,
        "dead_at": view.dead_at,
        "error": view.error,
    }


def _encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
