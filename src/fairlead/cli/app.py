"""The command's root."""

import click

import fairlead


@click.group()
@click.version_option(fairlead.__version__)
def root() -> None:
    """Lead a change into production."""


def main() -> None:
    root()
