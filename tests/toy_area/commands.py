"""What people type about lamps."""

from collections.abc import Sequence
from urllib.parse import quote

import click

from fairlead.console import local_engine, printing
from fairlead.console.clients import Source
from fairlead.console.nouns import Action, Noun
from fairlead.engine import filters, messages, service, visibility
from fairlead.engine import machine as machines
from tests.toy_area import machine


@click.command()
@click.argument("name")
@click.argument("watts", type=int)
def light(name: str, watts: int) -> None:
    """Light the lamp NAME with so many WATTS."""
    command_id = messages.command_id(f"light {name}")
    work = machine.Light(name, watts)
    local_engine.with_engine(lambda engine: engine.submit(machine.stream(name), work, command_id))
    printing.talk(f"lit: {name}")


def _listed(asked: Source, limit: int, where: str) -> Sequence[visibility.StreamView]:
    chosen = filters.where(where, machines.Machines([machine.LAMP]), machine.LAMP.name)
    which = visibility.StreamFilter(machine.LAMP.name, limit=limit, where=chosen)
    return asked.read(
        lambda session: visibility.streams(session, which),
        lambda server: server.listed(visibility.StreamView, "/lamps", limit, where),
    )


def _find(asked: Source, name: str) -> visibility.StreamView:
    return asked.read(
        lambda session: visibility.stream(session, machine.stream(name)),
        lambda server: server.get(visibility.StreamView, f"/lamps/{quote(name)}"),
    )


async def _steer(
    engine: service.Engine, name: str, _: Action, command_id: messages.CommandId
) -> messages.Receipt:
    return await engine.submit(machine.stream(name), machine.Delete(), command_id)


LAMP = Noun(
    singular="lamp",
    plural="lamps",
    list=_listed,
    find=_find,
    heads=("LAMP", "STATE"),
    row=lambda one: (one.name.partition("/")[2], one.state),
    show=lambda one: printing.pairs([("lamp", one.name), ("state", one.state)]),
    line=lambda one: f"{one.name}  {one.state}",
    essence=lambda one: one.version,
    verbs=("douse",),
    steer=_steer,
)
