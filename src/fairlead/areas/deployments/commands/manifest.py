"""A deployment as a file describes it; the files that it names are read here, with their SQL."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead import errors, validation
from fairlead.areas.deployments import requests
from fairlead.areas.deployments.migrations import files
from fairlead.areas.deployments.specs import reading
from fairlead.console.files import Document
from fairlead.console.nouns import Declared, Manifest

STARTER = """\
# A deployment for "fairlead deploy": docs/reference/deployments.md has all fields.
kind: deployment
version: v1                  # the tag of images that name none
application: app.yaml        # each a file, seen from this one, or its content
environment: prod.yaml
cluster: east.yaml           # leave it out for a workload on the control plane's own machine
# flags: [quick]
# expects: BEFORE            # another class than this one stops and asks
"""
_PARTS: dict[str, Callable[[Any], object]] = {
    "application": reading.application,
    "environment": reading.environment,
    "cluster": reading.cluster,
}


def read(content: Any, folder: Path) -> Declared:
    """With all that it names; Invalid, or Rejected with the file and line of another one."""
    if not isinstance(content, dict):
        raise validation.refusal("", "expected a map", "begin with kind: deployment")
    whole, base = dict(content), folder
    for part, reader in _PARTS.items():
        named = content.get(part)
        if isinstance(named, str):
            document = _part(folder / named, reader)
            whole[part] = document.content
            base = document.folder if part == "application" else base
    app = whole.get("application")
    if isinstance(app, dict) and "migrations" not in content:
        whole["migrations"] = _migrations(app, base)
    asked = requests.read(whole)
    counts = f"databases: {len(asked.app.databases)}"
    return Declared(asked.name, f"deployment {asked.name}, {counts}", whole, whole)


def _part(path: Path, reader: Callable[[Any], object]) -> Document:
    """Its mistakes are told here: the file that names it has other lines."""
    try:
        document = Document.read(str(path))
        with document.placed():
            reader(document.content)
    except errors.Invalid as error:
        raise errors.Rejected(error.message, hint=error.hint) from error
    return document


def _migrations(app: dict[str, Any], folder: Path) -> dict[str, dict[str, str]]:
    """What has another shape is refused where the application is read, with its field."""
    found = {}
    databases = app.get("databases")
    for entry in databases if isinstance(databases, list) else ():
        postgres = entry.get("postgres") if isinstance(entry, dict) else None
        named = postgres.get("migrations") if isinstance(postgres, dict) else None
        if named and isinstance(named, str):
            read_ = files.read([_within(folder, named)])
            found[str(entry.get("name"))] = {each.name: each.text for each in read_}
    return found


def _within(folder: Path, named: str) -> Path:
    """A file of others must not decide what is read on this machine."""
    path = (folder / named).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise errors.Rejected(
            f"migrations outside of the application's folder: {named}",
            hint="name a folder beside the application's file",
        )
    return path


DEPLOYMENT = Manifest(path="/deployments", read=read, starter=STARTER)
