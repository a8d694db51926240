"""A workload from a file, to the control plane that runs it."""

import sys
from pathlib import Path
from typing import Any

import click
import yaml

from fairlead import errors
from fairlead import settings as settings_
from fairlead.cli import options, printing, remote
from fairlead.intents import workloads

_MOST_BYTES = 1024 * 1024


@click.command()
@click.argument("file")
@options.output
def deploy(file: str, as_json: bool) -> None:  # noqa: FBT001 - click hands arguments over by name
    """Run the workload in FILE on the machine of the control plane.

    FILE is YAML or JSON; "-" reads standard input. A version that differs from the one that
    runs starts a rollout; the same one again changes nothing.
    """
    content = located(parsed(_read(file), file), _folder(file))
    # Here first: a mistake in the file is told without a control plane, too.
    workloads.read(content)
    _show(server(options.settings().web).deploy(content), as_json=as_json)


def parsed(text: str, file: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise errors.Rejected(
            f"not YAML or JSON: {file}: {said[:300]}", hint="check quotes and indentation there"
        ) from error


def located(content: Any, folder: Path) -> Any:
    """The same with the program's folder as a whole path, seen from where the file lies."""
    program = content.get("program") if isinstance(content, dict) else None
    if not isinstance(program, dict) or not isinstance(program.get("cwd", ""), str):
        # Its shape is refused where the words are read, with its path.
        return content
    cwd = str((folder / program.get("cwd", ".")).resolve())
    return {**content, "program": {**program, "cwd": cwd}}


def server(chosen: settings_.WebSettings) -> remote.ServerSource:
    """The control plane that is named, or the one that answers where ours would."""
    if chosen.server:
        return remote.ServerSource(remote.parse_server(chosen.server, chosen.token))
    asked = remote.ServerSource(remote.parse_server(f"http://{chosen.listen}", chosen.token))
    if not asked.answers():
        raise errors.Unavailable(
            f"no control plane answers: http://{chosen.listen}",
            hint="start one with fairlead up, or name one with FAIRLEAD_SERVER",
        )
    return asked


def _read(file: str) -> str:
    try:
        raw = sys.stdin.buffer.read(_MOST_BYTES + 1) if file == "-" else Path(file).read_bytes()
        text = raw.decode()
    except OSError as error:
        raise errors.NotFound(
            f"cannot read the file: {file}: {error.strerror}", hint="name a YAML or JSON file"
        ) from error
    except UnicodeDecodeError as error:
        raise errors.Rejected(f"not a text in UTF-8: {file}", hint="save it as UTF-8") from error
    if len(raw) > _MOST_BYTES:
        raise errors.Rejected(f"larger than {_MOST_BYTES} bytes: {file}", hint="name another file")
    return text


def _folder(file: str) -> Path:
    return Path.cwd() if file == "-" else Path(file).resolve().parent


def _show(told: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        printing.document(told)
        return
    events = told["receipt"]["events"]
    what = "taken" if events else "nothing changed"
    click.echo(f"{told['name']}  {told['revision']}  {told['url']}  {what}")
    if events:
        click.echo(f"follow it with: fairlead watch rollout/{told['name']}", err=True)
