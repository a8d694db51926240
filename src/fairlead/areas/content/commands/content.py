"""`fairlead content …`: each command is loaded when it is called."""

from collections.abc import Mapping

import click

from fairlead import loading

_HERE = "fairlead.areas.content.commands"
PLACES: Mapping[str, str] = {
    "serve": f"{_HERE}.serve:serve",
    "check": f"{_HERE}.check:check",
    "release": f"{_HERE}.release:release",
    "bucket": f"{_HERE}.bucket:bucket",
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        place = PLACES.get(cmd_name)
        return None if place is None else loading.load(place, click.Command)


@click.group(cls=_Group)
def content() -> None:
    """Serve, check and release versioned content."""
