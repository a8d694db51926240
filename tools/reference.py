"""The reference pages that are read off the program itself: settings, commands, errors."""

import inspect
from collections.abc import Iterator, Mapping, Sequence

import click

from fairlead import bootstrap, catalog, errors, settings
from fairlead.area import Area
from fairlead.cli import app, judge
from fairlead.cli.demo import errors as errors_
from fairlead.console import waiting

_AS_IT_STANDS = "\b\n"
SETTINGS_INTRO = """\
# Settings

Settings come from the environment. An unknown variable that begins with `FAIRLEAD_` is
refused, so that a slip of the pen does not go unnoticed. Where a value is marked secret, no
message shows it."""

COMMANDS_INTRO = """\
# Commands

Data goes to standard output, talk to standard error. Reading commands take `-o json` and `-o yaml`:
one document, or where they go on (`watch`, `events --follow`) one line or one document per event. A
failure ends in `error:` and `hint:` and one of the exit codes below."""

ERRORS_INTRO = """\
# Errors

Sorted by what happens next. A command ends with the exit code; the API answers with the
status and `{"error": {"message", "hint", "code"}}`. Every error carries a hint: the next thing
to try. More exit codes stand under [commands](commands.md#exit-codes)."""


def settings_page(areas: Sequence[Area] = catalog.AREAS) -> str:
    groups: dict[type, list[settings.Described]] = {}
    for each in settings.described(bootstrap.settings_groups(areas)):
        groups.setdefault(each.group, []).append(each)
    return "\n\n".join((SETTINGS_INTRO, *(_settings_table(*each) for each in groups.items())))


def commands_page(areas: Sequence[Area] = catalog.AREAS) -> str:
    context = click.Context(app.root, info_name="fairlead", **app.root.context_settings)
    parts = [COMMANDS_INTRO, _exit_codes(), _command("fairlead", app.root, context)]
    for name, entry in app.commands(areas).items():
        try:
            parts += _tree(f"fairlead {name}", app.load(name, entry), context)
        except errors.NotFound:
            parts.append(f"## `fairlead {name}`\n\n{entry.help} Not part of this installation yet.")
    return "\n\n".join(parts)


def errors_page() -> str:
    rows = [
        f"| `{each.__name__}` | {each.exit_code} | {each.http_status} | {inspect.getdoc(each)} |"
        for each in _kinds(errors.FairleadError)
    ]
    return "\n".join(
        (
            f"{ERRORS_INTRO}\n",
            "| error | exit code | HTTP status | meaning |",
            "|---|---|---|---|",
            *rows,
        )
    )


def exit_codes() -> Mapping[int, str]:
    """Every code that the command can end with."""
    ours: dict[int, str] = {}
    for each in _kinds(errors.FairleadError):
        # Where a narrower kind shares its code, the wider one says what it means.
        ours.setdefault(each.exit_code, f"{inspect.getdoc(each)}")
    # The root of all errors is never raised itself; 1 belongs to what nobody foresaw.
    others = (errors_.StoryFailed, *waiting.ENDINGS)
    further = {each.exit_code: f"{inspect.getdoc(each)}" for each in others}
    verdicts = {
        code: f"`fairlead judge` came to the verdict {verdict.value}."
        for verdict, code in judge.EXIT_CODES.items()
    }
    return dict(sorted({**ours, **further, **verdicts, **app.EXIT_CODES}.items()))


def _settings_table(kind: type, members: list[settings.Described]) -> str:
    rows = [
        f"| `{each.variable}` | {_default(each)} | {each.doc}{' Secret.' if each.secret else ''} |"
        for each in members
    ]
    head = f"## {inspect.getdoc(kind)}"
    return "\n".join(
        (f"{head.rstrip('.')}\n", "| variable | default | meaning |", "|---|---|---|", *rows)
    )


def _default(setting: settings.Described) -> str:
    return f"`{setting.default}`" if str(setting.default) else "empty"


def _exit_codes() -> str:
    rows = (f"| {code} | {meaning} |" for code, meaning in exit_codes().items())
    return "\n".join(("## Exit codes\n", "| code | meaning |", "|---|---|", *rows))


def _tree(path: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    yield _command(path, command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _tree(f"{path} {name}", below, context)


def _command(path: str, command: click.Command, context: click.Context) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## `{path}`", _prose(command.help or ""), f"```\n{path} {usage}\n```"]
    options = [each for each in command.get_params(context) if isinstance(each, click.Option)]
    shown = [record for each in options if (record := each.get_help_record(context))]
    if shown:
        rows = (f"| `{_cell(names)}` | {_cell(meaning)} |" for names, meaning in shown)
        parts.append("\n".join(("| option | meaning |", "|---|---|", *rows)))
    return "\n\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    """Help as Markdown; what click leaves as it stands is quoted as it stands."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```\n{each.removeprefix(_AS_IT_STANDS)}\n```" if each.startswith(_AS_IT_STANDS) else each
        for each in paragraphs
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _kinds(root: type[errors.FairleadError]) -> Iterator[type[errors.FairleadError]]:
    """An error and those below it, as errors.py draws them; not those of other modules."""
    if root.__module__ == errors.__name__:
        yield root
        for each in root.__subclasses__():
            yield from _kinds(each)
