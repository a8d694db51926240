"""Applications as a kind of file: `validate` knows them. They lie in repositories."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from fairlead import errors
from fairlead.areas.deployments.specs import reading
from fairlead.console.clients import Source
from fairlead.console.nouns import Declared, Manifest, Noun


def application(content: Any, _: Path) -> Declared:
    read = reading.application(content)
    counts = f"runtimes: {len(read.runtimes)}, databases: {len(read.databases)}"
    return _declared(read.name, f"application {read.name}, {counts}", content, read)


def _declared(name: str, text: str, content: Any, read: msgspec.Struct) -> Declared:
    return Declared(name, text, content, msgspec.to_builtins(read))


def _noun(singular: str, plural: str, read: Callable[[Any, Path], Declared]) -> Noun:
    """Of a kind that lies in files only, so there is nothing to list."""

    def nothing(_: Source, *__: object) -> NoReturn:
        raise errors.Rejected(
            f"{plural} lie in files and are not stored",
            hint="fairlead get stacks shows what is deployed where",
        )

    return Noun(
        singular=singular,
        plural=plural,
        list=nothing,
        find=nothing,
        heads=("NAME",),
        row=lambda one: (str(one),),
        show=lambda _: None,
        line=str,
        manifest=Manifest(f"/{plural}", read, f"kind: {singular}\n"),
    )


APPLICATION = _noun("application", "applications", application)
