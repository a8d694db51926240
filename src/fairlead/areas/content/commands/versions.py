"""What the commands that load content share: the file of its description, and both versions."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from fairlead.areas.content import description
from fairlead.areas.content.description import Description
from fairlead.areas.content.loader import Loaded, load
from fairlead.console.files import Document

F = TypeVar("F", bound=Callable[..., Any])


def both(command: F) -> F:
    """The argument FILE and the two versions, as a deployment sets them."""
    canary = click.option(
        "--canary",
        envvar="CANARY_VERSION",
        show_envvar=True,
        default=description.NONE,
        show_default=True,
        help="The version that the canary's share gets, or none.",
    )
    stable = click.option(
        "--stable",
        envvar="STABLE_VERSION",
        show_envvar=True,
        required=True,
        help="The version that everybody else gets.",
    )
    return click.argument("file")(stable(canary(command)))


def described(file: str) -> Description:
    document = Document.read(file)
    with document.placed():
        return description.read(document.content, document.folder)


async def loaded(content: Description, stable: str, canary: str) -> tuple[Loaded, Loaded | None]:
    """Both versions, or the error of the first that cannot be served."""
    first = await load(content, stable)
    if canary in {description.NONE, ""}:
        return first, None
    return first, first if canary == stable else await load(content, canary)
