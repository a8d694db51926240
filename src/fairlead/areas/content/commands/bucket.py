"""`fairlead content bucket`: where Unleash's rule puts an id, asked without a server."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any, TextIO

import click

from fairlead.areas.content.domain import population
from fairlead.console import options, printing


class _Percent(click.ParamType[Decimal]):
    name = "percent"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Decimal:
        try:
            percent = Decimal(str(value))
            fits = 0 <= percent <= 100  # noqa: PLR2004 - a percentage
        except InvalidOperation:
            fits = False
        if not fits:
            self.fail(f"not a percentage from 0 to 100: {value}", param, ctx)
        return percent


@click.command()
@click.option("--group", required=True, help="The group id of the strategy, often the flag's name.")
@click.option(
    "--percent", type=_Percent(), required=True, help="The rollout's percentage, from 0 to 100."
)
@click.option("--file", type=click.File(), help="Ids by line; - reads standard input.")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@options.output
def bucket(
    group: str, percent: Decimal, file: TextIO | None, ids: tuple[str, ...], *, as_json: bool
) -> None:
    """Say whether each ID is inside a gradual rollout, by Unleash's rule.

    The bucket, from 1 to 100, is murmur3 of `GROUP:ID` normalised; an id is inside when its
    bucket is at most the percentage.
    """
    if bool(ids) == (file is not None):
        raise click.UsageError("Give either ids or --file")
    found = {each: population.bucket(group, each) for each in (ids or _lines(file))}
    inside = {each: population.enabled(at, percent) for each, at in found.items()}
    if as_json:
        printing.document(
            {each: {"bucket": found[each], "enabled": inside[each]} for each in found}
        )
        return
    rows = [(each, str(at), "yes" if inside[each] else "no") for each, at in found.items()]
    printing.columns(("ID", "BUCKET", "ENABLED"), rows)


def _lines(file: TextIO | None) -> Iterator[str]:
    for line in file or ():
        if each := line.rstrip("\r\n"):
            yield each
