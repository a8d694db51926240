"""A workload from a file, to the control plane that runs it."""

import sys
import time
from pathlib import Path
from typing import Any

import click
import yaml

from fairlead import errors
from fairlead import settings as settings_
from fairlead.cli import options, printing, remote
from fairlead.domain.rollouts import bonds
from fairlead.intents import workloads

_MOST_BYTES = 1024 * 1024
_AT_REST = "Idle"
_LOOK_SECONDS = 0.5


@click.command()
@click.argument("file")
@click.option("--wait", is_flag=True, help="Wait until the version is live, or was taken back.")
@options.output
def deploy(file: str, wait: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands arguments over by name
    """Run the workload in FILE on the machine of the control plane.

    FILE is YAML or JSON; "-" reads standard input. A version that differs from the one that
    runs starts a rollout; the same one again changes nothing. With --wait, a version that was
    taken back is an error that says why.
    """
    content = located(parsed(_read(file), file), _folder(file))
    # Here first: a mistake in the file is told without a control plane, too.
    workloads.read(content)
    asked = server(options.settings().web)
    told = asked.deploy(content)
    _show(told, as_json=as_json)
    if wait:
        _await(asked, told["name"], told["revision"])


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


def _await(asked: remote.ServerSource, name: str, revision: str) -> None:
    """Until the rollout has come to rest; Conflict where it rests on another version."""
    while (view := asked.stream(bonds.rollout_stream(name))).state != _AT_REST:
        if view.ended_at is not None:
            raise errors.Conflict(f"deleted meanwhile: {name}", hint="deploy it again")
        time.sleep(_LOOK_SECONDS)
    book = view.data["book"]
    if book["stable"]["revision"] == revision:
        click.echo(f"{name}: {revision} carries all traffic", err=True)
        return
    outcome = book["outcome"] or {"why": "another version is wanted"}
    raise errors.Conflict(
        f"the version does not carry the traffic of {name}: {outcome['why']}",
        hint=f"see fairlead get rollout {name}; deploy a better one, or fairlead retry {name}",
    )
