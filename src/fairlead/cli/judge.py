"""`fairlead judge`: the verdict on two sets of samples, for people and pipelines."""

import sys
from typing import NoReturn

import click

from fairlead import errors
from fairlead.analysis import document, verdict
from fairlead.analysis import judge as judging
from fairlead.console import options, printing

EXIT_CODES = {
    verdict.Verdict.PASS: 0,
    verdict.Verdict.MARGINAL: 10,
    verdict.Verdict.FAIL: 11,
    verdict.Verdict.INCONCLUSIVE: 12,
    verdict.Verdict.WAIT: 13,
}
COLUMNS = ("metric", "label", "ratio", "low", "high", "estimate")


@click.command("judge", short_help="Judge samples of an experiment against control.")
@click.argument("file", type=click.Path(allow_dash=True))
@options.output
def judge(file: str, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Judge the samples in FILE (or `-` for standard input).

    FILE is JSON: {"config": {...}, "control": {metric: SIDE}, "experiment": {metric: SIDE}}.
    SIDE is a list of samples, or counts with their requests, {"events": [...], "requests": [...]},
    or a histogram, {"edges": [...], "counts": [[...], ...]}. Fields: docs/reference/judge.md.

    \b
    Exit codes:
      0   Pass
      10  Marginal
      11  Fail
      12  Inconclusive (a metric with too little data leaves it open)
      13  Wait (a metric with too little data asks for patience)
      3   the input was refused
      4   there is no such file
    """  # noqa: D301 - click reads the \b
    try:
        case = document.parse(_read(file))
    except errors.FairleadError as error:
        _fail(error)
    judgement = judging.judge(case)
    for warning in judgement.warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        printing.document(document.told(judgement))
    else:
        click.echo("\n".join(_lines(judgement)))
    sys.exit(EXIT_CODES[judgement.verdict])


def _read(file: str) -> bytes:
    try:
        with click.open_file(file, "rb") as stream:
            # One byte more than allowed tells that there is more, without reading all of it.
            text: bytes = stream.read(document.MOST_BYTES + 1)
            return text
    except FileNotFoundError as error:
        raise errors.NotFound(f"no such file: {file}", hint="name a file, or - to pipe") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise errors.Rejected(
            f"cannot read {file}: {reason}", hint="name a file that you may read, or - to pipe"
        ) from error


def _fail(error: errors.FairleadError) -> NoReturn:
    click.echo(f"error: {error.message}", err=True)
    click.echo(f"hint: {error.hint}", err=True)
    sys.exit(error.exit_code)


def _lines(judgement: verdict.Judgement) -> list[str]:
    """The verdict first, then the numbers, then why, metric by metric."""
    rows = [COLUMNS, *(_row(finding) for finding in judgement.findings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [f"{judgement.verdict.value}: {judgement.reason}", ""]
    lines += ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    lines += ["", f"score {judgement.score:g}"]
    lines += [
        f"group {group.name}: score {group.score:.4g}, weight {group.weight:.4g}"
        for group in judgement.groups
    ]
    lines.append("")
    lines += [f"{finding.name}: {finding.reason}" for finding in judgement.findings]
    return lines


def _row(finding: verdict.Finding) -> tuple[str, ...]:
    interval = finding.interval
    label = finding.label.value
    notes = [("critical", finding.critical), ("muted", finding.muted)]
    said = [word for word, holds in notes if holds]
    return (
        finding.name,
        f"{label} ({', '.join(said)})" if said else label,
        _cell(finding.ratio),
        _cell(interval.low if interval else None),
        _cell(interval.high if interval else None),
        _cell(interval.estimate if interval else None),
    )


def _cell(value: float | None) -> str:
    return "-" if value is None or value != value else f"{value:.4g}"  # noqa: PLR0124 - NaN only
