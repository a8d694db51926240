"""The commands that only look: get, events, watch."""

import time
from collections.abc import Iterable, Iterator, Sequence

import click

from fairlead.cli import options, printing, rollouts, sources
from fairlead.engine import library, messages

_PAGE = 500
_PAUSE = 0.25


@click.command()
@click.argument("what", required=False, metavar="[STREAM|MACHINE|rollouts|rollout]")
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--active/--ended", "active", default=None, help="Only streams of that kind.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    default=100,
    show_default=True,
    metavar="N",
    help="Show at most this many.",
)
@options.output
def get(
    what: str | None,
    name: str | None,
    active: bool | None,  # noqa: FBT001 - click hands options over by name
    limit: int,
    as_json: bool,  # noqa: FBT001 - click hands options over by name
) -> None:
    """Show rollouts, one rollout, streams, or one stream; the newest first.

    "rollouts" lists them with phase, weights and reason; "rollout NAME" shows one with its
    steps, checks, history and the verbs that fit now. NAME may be short where only one has it.
    STREAM is MACHINE/KEY as the list shows it; MACHINE alone lists the streams of its kind.
    """
    chosen = options.settings()
    if what in rollouts.WORDS:
        with sources.source(chosen) as asked:
            rollouts.get(asked, name, limit, as_json=as_json)
        return
    _no_name(name)
    if what is not None and "/" in what:
        stream = messages.parse_stream(what)
        with sources.source(chosen) as asked:
            _show_stream(asked.stream(stream), as_json=as_json)
        return
    ended = None if active is None else not active
    which = library.StreamFilter(machine=what, ended=ended, limit=limit)
    with sources.source(chosen) as asked:
        _show_streams(asked.streams(which), as_json=as_json)


@click.command()
@click.argument("stream")
@click.option(
    "--after", metavar="N", type=click.IntRange(0), default=0, help="Only events after this number."
)
@click.option("--follow", "-f", is_flag=True, help="Go on until the stream ends.")
@options.output
def events(stream: str, after: int, follow: bool, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show what happened to STREAM, in order.

    With --follow and -o json, each event is one line.
    """
    chosen = options.settings()
    name = messages.parse_stream(stream)
    with sources.source(chosen) as asked:
        asked.stream(name)
        if follow:
            _print_live(_followed(asked, name, after), as_json=as_json)
        elif as_json:
            printing.document([printing.event_data(each) for each in _all(asked, name, after)])
        else:
            _print_live(_all(asked, name, after), as_json=False)


@click.command()
@click.argument("stream", required=False, metavar="[STREAM|rollouts|rollout]")
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--since", metavar="PLACE", help="Go on after this place in the feed; 0.0 shows everything."
)
@options.output
def watch(stream: str | None, name: str | None, since: str | None, as_json: bool) -> None:  # noqa: FBT001 - click hands options over by name
    """Show new events of all streams, or of STREAM, until Ctrl-C.

    "rollouts" and "rollout NAME" show a line for each rollout as it stands, and one whenever
    it changes. With -o json, each line is one event or rollout; an event's place can be given
    to --since.
    """
    chosen = options.settings()
    if stream in rollouts.WORDS:
        with sources.source(chosen) as asked:
            rollouts.watch(asked, name, as_json=as_json)
        return
    _no_name(name)
    one = None if stream is None else messages.parse_stream(stream)
    place = None if since is None else library.parse_place(since)
    with sources.source(chosen) as asked:
        live = asked.live(place, one)
        printing.talk("watching; Ctrl-C ends it")
        _print_live(live, as_json=as_json)


def _no_name(name: str | None) -> None:
    if name is not None:
        raise click.UsageError(f"Got unexpected extra argument ({name})")


def _all(
    asked: sources.Source, name: messages.StreamName, after: int
) -> Iterator[library.EventView]:
    while page := asked.events(name, after, _PAGE):
        yield from page
        after = page[-1].seq


def _followed(
    asked: sources.Source, name: messages.StreamName, after: int
) -> Iterator[library.EventView]:
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


def _print_live(seen: Iterable[library.EventView], *, as_json: bool) -> None:
    for event in seen:
        if as_json:
            printing.line(printing.event_data(event))
        else:
            click.echo(printing.event_text(event))


def _show_stream(view: library.StreamView, *, as_json: bool) -> None:
    if as_json:
        printing.document(printing.stream_data(view))
        return
    printing.pairs(
        [
            ("stream", view.name),
            ("state", view.state),
            ("data", printing.compact(view.data)),
            ("version", str(view.version)),
            ("created", printing.moment(view.created_at)),
            ("updated", printing.moment(view.updated_at)),
            ("ended", printing.moment(view.ended_at) or "no"),
        ]
    )


def _show_streams(views: Sequence[library.StreamView], *, as_json: bool) -> None:
    if as_json:
        printing.document([printing.stream_data(view) for view in views])
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
