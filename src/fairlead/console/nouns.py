"""What `get`, `watch` and the verbs may name: each area brings its own nouns."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from fairlead.console.clients import Source
from fairlead.engine import messages, service


@dataclass(frozen=True, slots=True)
class Action:
    """What a person asks of one thing."""

    verb: str
    by: str
    """Who asks; a server knows the caller by the token."""

    why: str = ""
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a file asks for, once it makes sense."""

    name: str
    text: str
    """In one line for people."""

    content: Any
    """As it goes to the server."""

    whole: Any
    """With every default, in the words of the file: what `diff` compares."""

    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Manifest:
    """How files describe things of a noun: for `deploy`, `validate`, `diff` and `init`."""

    path: str
    """In the API: a POST deploys, and a GET of PATH/NAME has as `whole` what is deployed."""

    read: Callable[[Any, Path], Declared]
    """From plain data and the folder of its file; Invalid with all that does not hold."""

    starter: str
    """The file that `init` writes."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far something that was deployed has come."""

    state: Literal["working", "done", "failed", "paused", "replaced"]
    why: str
    """What it came to, in one sentence."""

    hint: str
    """What to do about it where it is not done."""

    frame: Sequence[str]
    """Its steps as lines, drawn again and again on a terminal."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """One run of something, as `history` shows it."""

    number: int
    version: str
    revision: str
    started: datetime
    ended: datetime | None
    outcome: str
    """Empty while it is in progress."""

    why: str
    """Why it started and why it ended, and who asked for it."""


@dataclass(frozen=True, slots=True)
class Noun:
    """A kind of thing that people ask for by name."""

    singular: str
    plural: str
    """Also its path in the API: /api/v1/PLURAL."""

    list: Callable[[Source, int, str], Sequence[Any]]
    """At most so many, those that a filter of attributes fits; an empty one fits all."""

    find: Callable[[Source, str], Any]
    """One of them closely; NotFound where there is none of that name."""

    heads: Sequence[str]
    row: Callable[[Any], Sequence[str]]
    """Of one in the list, under the heads."""

    show: Callable[[Any], None]
    """One of them closely, for people."""

    line: Callable[[Any], str]
    """One of the list, or one found closely, as a line of `watch`."""

    summary: Callable[[Any], Any] = lambda found: found
    """From one found closely to what the list has of it."""

    key: Callable[[Any], str] = lambda one: str(one.name)
    essence: Callable[[Any], object] = lambda one: one
    """What of it must change for `watch` to show it again."""

    verbs: Collection[str] = ()
    """The names of those that its area declares for it."""

    steer: (
        Callable[[service.Engine, str, Action, messages.CommandId], Awaitable[messages.Receipt]]
        | None
    ) = None
    """Performs a verb straight on the store of this machine."""

    manifest: Manifest | None = None
    progress: Callable[[Any, str], Progress] | None = None
    """Of one found closely: how far the revision that `deploy` handed in has come."""

    history: Callable[[Any], Sequence[PastRun]] | None = None
    """Of one found closely: its runs, the newest first."""

    logs: bool = False
    """Whether the API has what one wrote at /PLURAL/NAME/logs."""

    @property
    def words(self) -> tuple[str, str]:
        return self.singular, self.plural
