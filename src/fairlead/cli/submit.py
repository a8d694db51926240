"""A command by hand, into a stream."""

import secrets
import sys
from typing import Any

import click
import msgspec

from fairlead import errors
from fairlead.console import local_engine, options, printing
from fairlead.engine import messages, service


@click.command()
@click.argument("stream")
@click.argument("type_", metavar="TYPE")
@click.argument("data", required=False, default="{}", metavar="[JSON]")
@click.option(
    "--id", "id_", metavar="ID", help="An id for this command; sent twice, it takes effect once."
)
@click.option(
    "--queue",
    default="",
    metavar="QUEUE",
    help="Who performs for a stream that this creates, such as kubernetes@prod.",
)
@options.output
def submit(
    stream: str,
    type_: str,
    data: str,
    *,
    as_json: bool,
    **given: str | None,
) -> None:
    """Submit a command of TYPE with the fields JSON to STREAM.

    JSON is one object; "-" reads it from standard input. Without --id every call is a new
    command.
    """
    name = messages.parse_stream(stream)
    fields = _fields(sys.stdin.read() if data == "-" else data)
    id_, queue = given["id_"], messages.parse_queue(given["queue"] or "")
    command_id = messages.command_id(secrets.token_hex(16) if id_ is None else id_)

    async def work(engine: service.Engine) -> messages.Receipt:
        command = engine.registry.of(name).codec.commands.parse(type_, fields)
        return await engine.submit(name, command, command_id, queue=queue)

    # An older server refuses a word that it does not know.
    words = {"type": type_, "data": fields} | ({"queue": queue} if queue else {})
    receipt = local_engine.write(work, lambda server: server.submit(name, words, command_id))
    _show(receipt, command_id, as_json=as_json)


def _fields(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError) as error:
        raise errors.Rejected(
            f"malformed JSON: {error}", hint='a command\'s fields are one object: {"name": 1}'
        ) from error


def _show(receipt: messages.Receipt, command_id: str, *, as_json: bool) -> None:
    if as_json:
        printing.document(
            {
                "stream": receipt.stream,
                "id": command_id,
                "first": receipt.first,
                "last": receipt.last,
                "duplicate": receipt.duplicate,
            }
        )
        return
    what = f"events {receipt.first} to {receipt.last}" if receipt.events else "nothing changed"
    again = "; already applied" if receipt.duplicate else ""
    click.echo(f"{receipt.stream}  {command_id}  {what}{again}")
