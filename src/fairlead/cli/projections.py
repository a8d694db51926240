"""Views built again from the first event."""

import click

from fairlead import errors
from fairlead.cli import errands, options, printing


@click.group()
def projections() -> None:
    """Build views again from events."""


@projections.command()
@click.argument("name")
def rebuild(name: str) -> None:
    """Forget the rows of the view NAME and fold every event again."""
    known = sorted(view.name for view in options.cast().views)
    if name not in known:
        raise errors.NotFound(
            f"no such projection: {name}",
            hint=f"known projections: {', '.join(known) or 'none'}",
        )
    errands.with_engine(lambda engine: engine.projector.rebuild(name))
    printing.talk(f"rebuilt: {name}")
