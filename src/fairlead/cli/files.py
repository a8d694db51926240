"""The commands that take files: deploy, validate, diff, init; each noun brings its kind of file."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec
import yaml

from fairlead import errors, validation, values
from fairlead.console import clients, options, printing, waiting
from fairlead.console.files import Document, shown
from fairlead.console.nouns import Declared, Manifest, Noun

DIFFERS = 1


@click.command()
@click.argument("file")
@click.option("--dry-run", is_flag=True, help="Check FILE and deploy nothing; needs no server.")
@click.option(
    "--wait", is_flag=True, help="Show the steps, until all are done or it is rolled back."
)
@click.option(
    "--timeout",
    "seconds",
    type=options.SPAN,
    metavar="TIME",
    help="With --wait, give up waiting after 90s, 10m or 1h.",
)
@options.output
def deploy(
    file: str,
    *,
    dry_run: bool,
    wait: bool,
    seconds: float | None,
    as_json: bool,
) -> None:
    """Run the workload in FILE on the machine of the control plane.

    FILE is YAML or JSON; "-" reads standard input. A version that differs from the one that
    runs starts a rollout; the same one again changes nothing.

    \b
    Exit codes with --wait:
      0   the version has all traffic
      6   another version was requested meanwhile
      20  it was rolled back
      21  it is paused, or waits for approval
      22  it took longer than --timeout
    """  # noqa: D301 - click reads the \b
    if seconds is not None and not wait:
        raise click.UsageError("--timeout is for --wait")
    if dry_run:
        _validate([file], as_json=as_json)
        return
    document = Document.read(file)
    noun, manifest, declared = _declared(document)
    _warn(declared)
    asked = clients.control_plane(options.settings().web)
    with document.placed():
        told = asked.post(dict[str, Any], manifest.path, declared.content)
    if not as_json:
        click.echo(_line(told))
    if wait:
        ended = waiting.wait(noun, asked, told["name"], told["revision"], seconds)
        told["outcome"] = ended.why
        printing.talk(f"{told['name']}: {ended.why}")
    if as_json:
        printing.document(told)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@options.output
def validate(files: Sequence[str], as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Say whether each FILE could be deployed, and all that is wrong; needs no server.

    "-" reads standard input. With -o json, each mistake has its file, line, column and field.
    """
    _validate(files, as_json=as_json)


@click.command()
@click.argument("file")
@options.output
def diff(file: str, as_json: bool) -> int:  # noqa: FBT001 - click hands options over by name
    """Show what a deploy of FILE would change.

    It is held against what was deployed last, with every default. Secrets in addresses are
    neither shown nor compared, and it says so where there are any.

    \b
    Exit codes:
      0  nothing would change
      1  something would
    """  # noqa: D301 - click reads the \b
    document = Document.read(file)
    _, manifest, declared = _declared(document)
    asked = clients.control_plane(options.settings().web)
    try:
        before = asked.get(dict[str, Any], f"{manifest.path}/{declared.name}")["whole"]
    except errors.NotFound:
        before = None
    after = _redacted(declared.whole)
    lines = _compared(before, after, file)
    if as_json:
        changes = {"name": declared.name, "before": before, "after": after}
        printing.document({"changes": bool(lines), **changes})
    for line in [] if as_json else lines:
        click.echo(line)
    hides = after != declared.whole
    if hides:
        printing.talk("secrets in addresses are not compared: whether they change, nobody says")
    if not lines:
        printing.talk("nothing else would change" if hides else "nothing would change")
    return DIFFERS if lines else 0


@click.command()
@click.argument("file", default="fairlead.yaml")
def init(file: str) -> None:
    """Write a file to start from, with comments; FILE is fairlead.yaml unless named.

    A file that is there already is left as it is.
    """
    _, manifest = _manifests()[0]
    try:
        with Path(file).open("x", encoding="utf-8") as made:
            made.write(manifest.starter)
    except FileExistsError as error:
        raise errors.Conflict(f"file already exists: {file}", hint="name another one") from error
    except OSError as error:
        raise errors.Rejected(
            f"cannot write the file: {file}: {error.strerror}", hint="name another one"
        ) from error
    printing.talk(f"written: {file}; next: fairlead deploy {file} --wait")


def _declared(document: Document) -> tuple[Noun, Manifest, Declared]:
    with document.placed():
        noun, manifest = _kind(document.content)
        return noun, manifest, manifest.read(document.content, document.folder)


def _kind(content: Any) -> tuple[Noun, Manifest]:
    """The noun that `kind` names; without one it is a workload, the first that files describe."""
    able = _manifests()
    named = content.get("kind") if isinstance(content, dict) else None
    if named is None:
        return able[0]
    found = next((each for each in able[1:] if named in each[0].words), None)
    if found is not None:
        return found
    if "apiVersion" in content:
        hint = "apply it with kubectl; the operator says what is wrong with it"
    else:
        known = (noun.singular for noun, _ in able[1:])
        hint = f"{values.one_of(str(named), known)}; a workload has none"
    raise validation.refusal("kind", f"unknown value: {str(named)[:40]}", hint)


def _manifests() -> list[tuple[Noun, Manifest]]:
    nouns = options.installation().nouns()
    return [(noun, noun.manifest) for noun in nouns if noun.manifest is not None]


def _validate(files: Sequence[str], *, as_json: bool) -> None:
    told: list[dict[str, Any]] = []
    problems: list[errors.Problem] = []
    for file in files:
        verdict: dict[str, Any] = {"file": shown(file), "valid": True, "problems": []}
        try:
            declared = _declared(Document.read(file))[2]
            verdict |= {"name": declared.name, "warnings": list(declared.warnings)}
            if not as_json:
                click.echo(f"{shown(file)}: valid: {declared.text}")
                _warn(declared)
        except errors.Invalid as error:
            verdict |= {"valid": False, "problems": msgspec.to_builtins(error.problems)}
            problems += error.problems
        told.append(verdict)
    if as_json:
        printing.document(told)
    if problems:
        raise errors.Invalid(problems)


def _warn(declared: Declared) -> None:
    for each in declared.warnings:
        click.echo(f"{click.style('warning:', fg='yellow')} {printing.shown(each)}", err=True)


def _line(told: dict[str, Any]) -> str:
    what = "taken" if told["receipt"]["events"] else "nothing changed"
    return f"{told['name']}  {told['revision']}  {told['url']}  {what}"


def _compared(before: Any, after: Any, file: str) -> list[str]:
    old = [] if before is None else _yaml(before)
    return list(difflib.unified_diff(old, _yaml(after), "deployed", file, lineterm=""))


def _redacted(content: Any) -> Any:
    """As the server shows what is deployed, or whatever has a secret would differ for ever."""
    return msgspec.json.decode(values.redacted(msgspec.json.encode(content).decode()))


def _yaml(content: Any) -> list[str]:
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True).splitlines()
