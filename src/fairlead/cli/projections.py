"""Views built again from the first event."""

import click

from fairlead import errors
from fairlead.console import local_engine, options, printing


@click.group()
def projections() -> None:
    """Rebuild views from events."""


@projections.command()
@click.argument("name")
def rebuild(name: str) -> None:
    """Drop the rows of the view NAME and fold every event again."""
    known = sorted(options.installation().projection_names)
    if name not in known:
        raise errors.NotFound(
            f"no such projection: {name}",
            hint=f"known projections: {', '.join(known) or 'none'}",
        )
    local_engine.with_engine(lambda engine: engine.projector.rebuild(name))
    printing.talk(f"rebuilt: {name}")
