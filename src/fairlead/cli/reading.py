"""The commands that only read: get, events, watch."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click
import msgspec

from fairlead import catalog, errors
from fairlead.console import clients, completing, options, printing
from fairlead.console.nouns import Noun
from fairlead.engine import filters, messages, visibility
from fairlead.engine import machine as machines
from fairlead.engine.store import protocol
from fairlead.values import one_of

_PAGE = 500
_PAUSE = 0.25
# Quick enough for eyes; what was too quick for them stands in the history.
_WATCH_PAUSE = 0.5


def _kinds() -> Iterator[str]:
    """What areas let people list, by its second word, the plural; what lies in files has none."""
    seen = set[str]()
    for word, place in (each for area in catalog.AREAS for each in area.nouns.items()):
        if place in seen:
            yield word
        seen.add(place)


_GET = f"""Show things of a kind, one of them, streams, or one stream; the newest first.

KIND lists {", ".join(_kinds())} or streams; KIND NAME shows one closely, with the verbs that fit
now. NAME may be short where only one has it. STREAM is MACHINE/KEY as the list shows it;
MACHINE alone lists the streams of its kind. A filter knows =, !=, <, <=, >, >=, in (…) and
"and"; given several times, all must fit.
"""


@click.command(help=_GET)
@click.argument(
    "what",
    required=False,
    metavar="[KIND|STREAM|MACHINE]",
    shell_complete=completing.kinds,
)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completing.names)
@click.option("--active/--ended", "active", default=None, help="Only streams of that kind.")
@options.limit(10_000)
@click.option(
    "--where",
    "wheres",
    multiple=True,
    metavar="FILTER",
    help='Only those with these attributes: "phase=Paused and namespace in (shop, till)".',
)
@options.output
def get(
    what: str | None,
    name: str | None,
    active: bool | None,  # noqa: FBT001 - click hands options over by name
    **which: Any,
) -> None:
    limit, as_json = which["limit"], which["as_json"]
    where = " and ".join(which["wheres"])
    noun = _noun(what)
    one = name is not None or (noun is None and what is not None and "/" in what)
    if where and one:
        raise click.UsageError("--where is for lists")
    if noun is not None:
        with options.source() as asked:
            _get(noun, asked, name, _Listing(limit, where), as_json=as_json)
        return
    _no_name(name, what)
    if what is not None and one:
        stream = messages.parse_stream(what)
        with options.source() as asked:
            _show_stream(asked, _view(asked, stream), as_json=as_json)
        return
    ended = None if active is None else not active
    machine = None if what == "streams" else what
    chosen = visibility.StreamFilter(machine=machine, ended=ended, limit=limit)
    with options.source() as asked:
        found = _found(asked, chosen, where)
    if not found and machine is not None:
        _check_kind(machine)
    _show_streams(found, as_json=as_json)


@click.command()
@click.argument("stream")
@click.option(
    "--after", metavar="N", type=click.IntRange(0), default=0, help="Only events after this number."
)
@click.option("--follow", "-f", is_flag=True, help="Follow until the stream ends.")
@options.output
def events(stream: str, after: int, follow: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show what happened to STREAM, in order.

    With --follow and -o json, each event is one line.
    """
    name = messages.parse_stream(stream)
    with options.source() as asked:
        if told := _view(asked, name).archived:
            printing.talk(told)
        if follow:
            _print_live(_followed(asked, name, after), as_json=as_json)
        elif as_json:
            printing.document([each.told() for each in _all(asked, name, after)])
        else:
            _print_live(_all(asked, name, after), as_json=False)


@click.command()
@click.argument(
    "stream",
    required=False,
    metavar="[KIND|STREAM]",
    shell_complete=completing.kinds,
)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=completing.names)
@click.option(
    "--since", metavar="PLACE", help="Start after this place in the feed; 0.0 shows everything."
)
@options.output
def watch(stream: str | None, name: str | None, since: str | None, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show new events of all streams, or of STREAM, until Ctrl-C.

    KIND, as in "fairlead get", shows a line for each thing as it stands, and one whenever it
    changes; KIND NAME does so for one. With -o json, each line is one event or thing; an event's
    place can be given to --since.
    """
    if (noun := _noun(stream)) is not None:
        with options.source() as asked:
            _watch(noun, asked, name, as_json=as_json)
        return
    _no_name(name, stream)
    place = None if since is None else visibility.parse_place(since)
    with options.source() as asked:
        one = None if stream is None else _stream(asked, stream)
        live = asked.live(place, one)
        printing.talk("watching; press Ctrl-C to stop")
        if one is not None and not _is_there(asked, one):
            printing.talk(f"no such stream yet: {one}")
        _print_live(live, as_json=as_json)


def _noun(word: str | None) -> Noun | None:
    return next((one for one in options.installation().nouns() if word in one.words), None)


@dataclass(frozen=True, slots=True)
class _Listing:
    """How much of a list is shown."""

    limit: int
    where: str


def _found(
    asked: clients.Source, which: visibility.StreamFilter, where: str
) -> Sequence[visibility.StreamView]:
    """Streams from the store, or from the server, which knows its own machines best."""

    def local(session: protocol.Session) -> Sequence[visibility.StreamView]:
        known = machines.Machines(options.installation().machines)
        chosen = filters.where(where, known, which.machine)
        return visibility.streams(session, replace(which, where=chosen))

    return asked.read(local, lambda server: server.streams(which, where))


def _get(
    noun: Noun, asked: clients.Source, name: str | None, listing: _Listing, *, as_json: bool
) -> None:
    """All of them, or one."""
    if name is not None:
        one = noun.find(asked, name)
        if as_json:
            printing.document(msgspec.to_builtins(one))
        else:
            noun.show(one)
        return
    found = noun.list(asked, listing.limit, listing.where)
    if as_json:
        printing.document(msgspec.to_builtins(found))
    elif found:
        printing.columns(noun.heads, [noun.row(one) for one in found])
    else:
        printing.talk(f"no {noun.plural}")


def _watch(noun: Noun, asked: clients.Source, name: str | None, *, as_json: bool) -> None:
    """A line for each as it stands, and one whenever what it says changes."""
    printing.talk("watching; press Ctrl-C to stop")
    for one in _changes(noun, asked, name):
        if as_json:
            printing.line(msgspec.to_builtins(one))
        else:
            click.echo(printing.shown(noun.line(one)))


def _changes(noun: Noun, asked: clients.Source, name: str | None) -> Iterator[Any]:
    told: dict[str, object] = {}
    while True:
        now = [noun.summary(noun.find(asked, name))] if name else noun.list(asked, _PAGE, "")
        for one in reversed(now):
            if told.get(noun.key(one)) != noun.essence(one):
                told[noun.key(one)] = noun.essence(one)
                yield one
        time.sleep(_WATCH_PAUSE)


def _stream(asked: clients.Source, text: str) -> messages.StreamName:
    """A stream that is there or may come; NotFound where its machine is unknown."""
    machine = text.partition("/")[0]
    # The store may hold streams of a machine that only a newer program knows.
    if not asked.streams(visibility.StreamFilter(machine=machine, limit=1)):
        _check_kind(machine)
    return messages.parse_stream(text)


def _view(asked: clients.Source, name: messages.StreamName) -> visibility.StreamView:
    """NotFound tells of the kind where it is that which nobody knows."""
    try:
        return asked.stream(name)
    except errors.NotFound:
        _check_kind(name.partition("/")[0])
        raise


def _check_kind(word: str) -> None:
    """NotFound where nothing that `get` or `watch` may name is called so."""
    known = completing.known_kinds()
    if word not in known:
        raise errors.NotFound(f"unknown kind: {word[:80]}", hint=one_of(word[:80], known))


def _is_there(asked: clients.Source, name: messages.StreamName) -> bool:
    try:
        asked.stream(name)
    except errors.NotFound:
        return False
    return True


def _no_name(name: str | None, kind: str | None) -> None:
    """A name goes with a noun; before it is refused, so is a noun that nobody knows."""
    if name is not None:
        _check_kind((kind or "").partition("/")[0])
        raise click.UsageError(f"Got unexpected extra argument ({name})")


def _all(
    asked: clients.Source, name: messages.StreamName, after: int
) -> Iterator[visibility.EventView]:
    while page := asked.events(name, after, _PAGE):
        yield from page
        after = page[-1].seq


def _followed(
    asked: clients.Source, name: messages.StreamName, after: int
) -> Iterator[visibility.EventView]:
    while True:
        # The stream first: read the other way round, it could end between the two and its
        # last events would never be shown.
        view = asked.stream(name)
        for event in _all(asked, name, after):
            yield event
            after = event.seq
        if view.ended_at is not None:
            return
        time.sleep(_PAUSE)


def _print_live(seen: Iterable[visibility.EventView], *, as_json: bool) -> None:
    for event in seen:
        if as_json:
            printing.line(event.told())
        else:
            click.echo(printing.event_text(event))


def _show_stream(asked: clients.Source, view: visibility.StreamView, *, as_json: bool) -> None:
    if as_json:
        printing.document(view)
        return
    unserved = clients.unserved(asked, view)
    printing.pairs(
        [
            ("stream", view.name),
            ("state", view.state),
            ("data", printing.compact(view.data)),
            ("version", str(view.version)),
            ("queue", view.queue or "none"),
            *([("waiting", unserved)] if unserved else []),
            *([("history", view.archived)] if view.archived else []),
            ("created", printing.moment(view.created_at)),
            ("updated", printing.moment(view.updated_at)),
            ("ended", printing.moment(view.ended_at) or "no"),
        ]
    )


def _show_streams(views: Sequence[visibility.StreamView], *, as_json: bool) -> None:
    if as_json:
        printing.document(views)
    elif views:
        rows = [
            (
                view.name,
                view.state,
                str(view.version),
                printing.moment(view.updated_at),
                "ended" if view.ended_at else "active",
            )
            for view in views
        ]
        printing.columns(("STREAM", "STATE", "VERSION", "UPDATED", "LIFE"), rows)
    else:
        printing.talk("no streams")
