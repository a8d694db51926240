"""What a command was given besides its own options: settings and machines; light to import."""

import os
from collections.abc import Callable

import click

from fairlead import bootstrap
from fairlead import settings as settings_


def settings(ctx: click.Context) -> settings_.Settings:
    """The environment's settings, with what the root's options put above them."""
    overrides = getattr(ctx.obj, "overrides", None) or {}
    return bootstrap.settings({**os.environ, **overrides})


def cast(ctx: click.Context) -> bootstrap.Cast:
    """The installation's machines, or those that whoever started us hands down."""
    other: Callable[[], bootstrap.Cast] | None = getattr(ctx.obj, "cast", None)
    return (other or bootstrap.cast)()
