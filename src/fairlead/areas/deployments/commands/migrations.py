"""`fairlead migrations`: what pending migrations would do to a database, before they do it."""

from pathlib import Path
from typing import Any

import click

from fairlead.areas.deployments.migrations import evaluation, files, runner, scratch
from fairlead.clients.postgres.connection import Patience
from fairlead.console import options, printing


@click.group(short_help="Evaluate, run or list database migrations.")
def migrations() -> None:
    """Evaluate, run or list migrations of a PostgreSQL database."""


_PATH = click.Path(path_type=Path)
database_url = click.option(
    "--database-url",
    required=True,
    envvar="MIGRATIONS_DATABASE_URL",
    metavar="URL",
    help="The database to migrate, or MIGRATIONS_DATABASE_URL; others may see an argument in the"
    " list of processes, so set the variable where the URL has a password.",
)


@migrations.command(short_help="Say what migrations ask of the version that runs.")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@database_url
@click.option("--scratch-url", default="", metavar="URL", help="Another server for the copy.")
@click.option("--pg-dump", default="", metavar="FILE", help="The pg_dump to use.")
@click.option(
    "--timeout", type=options.SPAN, default="5m", show_default=True, help="For all of it."
)
@options.output
def evaluate(paths: tuple[Path, ...], timeout: float, as_json: bool, **where: str) -> None:  # noqa: FBT001 - click hands options over by name
    """Run the migrations in PATH on a scratch copy of the schema, and say what they need.

    NOP: nothing is pending. PARALLEL: at any time. BEFORE: before the new version runs. DOWNTIME:
    while nothing runs. The database itself is never changed.
    """
    limits = scratch.Limits(overall_seconds=timeout)
    found = evaluation.evaluate(
        evaluation.Request(
            where["database_url"],
            files.read(paths),
            where["scratch_url"],
            where["pg_dump"],
            limits,
        )
    )
    if as_json:
        printing.document(told(found))
        return
    _print(found)


@migrations.command(short_help="Apply pending migrations in order.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=_PATH)
@database_url
def run(paths: tuple[Path, ...], database_url: str) -> None:
    """Apply the migrations in PATH that the database does not have yet, each in a transaction."""
    done = runner.run(database_url, files.read(paths), Patience(tell=printing.talk))
    printing.talk(f"{len(done.applied)} applied" if done.applied else "nothing is pending")


@migrations.command(short_help="Show which migrations are applied.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=_PATH)
@database_url
@options.output
def status(paths: tuple[Path, ...], database_url: str, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show for each migration in PATH whether the database has it."""
    found = runner.status(database_url, files.read(paths))
    if as_json:
        rows = [{"version": one.version, "name": one.name, "state": state} for one, state in found]
        printing.document(rows)
    else:
        printing.columns(("VERSION", "STATE", "FILE"), [(o.version, s, o.name) for o, s in found])


def told(found: evaluation.Evaluation) -> dict[str, Any]:
    """As programs read it."""
    return {
        "class": found.impact.value,
        "reasons": list(found.reasons),
        "statements": [
            {
                "sql": each.sql,
                "class": each.impact.value,
                "locks": [{"relation": one.relation, "mode": one.mode} for one in each.locks],
                "rewrite": each.rewrite,
                "scan": each.scan,
                "reasons": list(each.reasons),
                "suggestion": each.suggestion,
            }
            for each in found.statements
        ],
    }


def _print(found: evaluation.Evaluation) -> None:
    click.echo(found.impact.value)
    for reason in found.reasons:
        click.echo(f"          {printing.shown(reason)}")
    for each in found.statements:
        click.echo(f"\n{each.impact.value:9} {printing.shown(' '.join(each.sql.split())[:200])}")
        for reason in each.reasons:
            click.echo(f"          {printing.shown(reason)}")
        if each.suggestion:
            click.echo(f"          safer: {printing.shown(each.suggestion)}")
