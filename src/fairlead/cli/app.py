"""The command's root: finds a command, runs it, and says what went wrong.

A command's module is loaded when it is called, never for help: the table below holds what
`fairlead --help` shows, so help stays quick however much a command imports. Every failure
leaves through `run`, as an exit code that docs/reference/commands.md lists.
"""

import contextlib
import dataclasses
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

import fairlead
from fairlead import catalog, errors, loading
from fairlead.area import Area, Command, Verb
from fairlead.console.context import CliContext
from fairlead.values import nearest

_GUESS = " Did you mean "
UNEXPECTED = 1
USAGE = 2
STOPPED = 130
PIPE_GONE = 141

EXIT_CODES: Mapping[int, str] = {
    0: "Success.",
    UNEXPECTED: "`fairlead diff` found a difference; else an unexpected error: a bug in fairlead,"
    " please report it.",
    USAGE: "The command line is wrong: an unknown command or option, a missing argument.",
    STOPPED: "Stopped by Ctrl-C, or the answer to a question was no.",
    PIPE_GONE: "The reader of the output closed it.",
}
"""Besides those of our errors (docs/reference/errors.md)."""


_FIRST: Mapping[str, Command] = {
    "demo": Command(
        "fairlead.cli.demo.command:demo", "See a good release go live and a bad one roll back."
    ),
    "up": Command("fairlead.cli.serve:up", "Run the control plane and its page on this machine."),
    "worker": Command("fairlead.cli.serve:worker", "Run one more worker on a shared store."),
    "operator": Command(
        "fairlead.cli.operator:operator", "Run the operator for a Kubernetes cluster."
    ),
    "init": Command("fairlead.cli.files:init", "Write a file to start from."),
    "validate": Command("fairlead.cli.files:validate", "Check files and report every mistake."),
    "diff": Command("fairlead.cli.files:diff", "Show what a deploy would change."),
    "deploy": Command("fairlead.cli.files:deploy", "Deploy what a file describes."),
    "get": Command("fairlead.cli.reading:get", "Show what there is of a kind, or one of them."),
    "events": Command("fairlead.cli.reading:events", "Show what happened to a stream."),
    "watch": Command(
        "fairlead.cli.reading:watch", "Show events or things of a kind as they change."
    ),
    "history": Command("fairlead.cli.inspecting:history", "Show the runs of what was deployed."),
    "logs": Command("fairlead.cli.inspecting:logs", "Show the output of a workload's processes."),
}
_FURTHER: Mapping[str, Command] = {
    "submit": Command("fairlead.cli.submit:submit", "Submit a command to a stream."),
    "outbox": Command("fairlead.cli.outbox:outbox", "List, retry or discard effects."),
    "timers": Command("fairlead.cli.timers:timers", "List, retry or discard timers."),
    "queues": Command("fairlead.cli.queues:queues", "List queues, or move a stream to another."),
    "store": Command("fairlead.cli.store:store", "Migrate, inspect or archive the store."),
    "projections": Command("fairlead.cli.projections:projections", "Rebuild views from events."),
    "token": Command("fairlead.cli.tokens:token", "Create, list or revoke API tokens."),
    "completion": Command(
        "fairlead.cli.completion:completion", "Print the script that completes in a shell."
    ),
    "judge": Command("fairlead.cli.judge:judge", "Judge samples of an experiment against control."),
}


def commands(areas: Sequence[Area]) -> Mapping[str, Command | Verb]:
    """All commands of the program with these areas; of verbs of one name, the first is shown."""
    verbs: dict[str, Verb] = {}
    for area in areas:
        verbs |= {name: each for name, each in area.verbs.items() if name not in verbs}
    brought = {name: each for area in areas for name, each in area.commands.items()}
    return {**_FIRST, **verbs, **_FURTHER, **brought}


COMMANDS = commands(catalog.AREAS)


class Root(click.Group):
    """A group whose commands are loaded on call."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else load(cmd_name, entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # From the table: loading every command for its help would take longer than a key press.
        found = [(name, entry.help) for name, entry in COMMANDS.items()]
        items = [
            CompletionItem(name, help=help_) for name, help_ in found if name.startswith(incomplete)
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        # Caught here, because click would end the program by itself on a broken pipe.
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _PipeGoneError from error


class _PipeGoneError(Exception):
    """Whoever read our output is gone."""


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(fairlead.__version__, message="fairlead %(version)s")
@click.option(
    "--database-url",
    metavar="URL",
    help="Use this PostgreSQL store instead of FAIRLEAD_DATABASE_URL; others may see it in the"
    " list of processes, so set the variable where the URL has a password.",
)
@click.option(
    "--state-dir", metavar="DIR", help="Use the store in this folder instead of FAIRLEAD_STATE_DIR."
)
@click.pass_context
def root(ctx: click.Context, database_url: str | None, state_dir: str | None) -> None:
    """Lead a change into production, in steps that can be undone.

    Data goes to standard output, messages to standard error. A failure ends with a hint and a
    documented exit code.
    """
    overrides = {}
    if database_url is not None:
        overrides["FAIRLEAD_DATABASE_URL"] = database_url
    if state_dir is not None:
        overrides["FAIRLEAD_STATE_DIR"] = state_dir
    if overrides:
        # Whoever names a store wants that store, not what a server elsewhere knows.
        overrides["FAIRLEAD_SERVER"] = ""
    given = ctx.find_object(CliContext) or CliContext()
    ctx.obj = dataclasses.replace(given, overrides={**given.overrides, **overrides})


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], context: CliContext | None = None) -> int:
    """Run one command line; its exit code."""
    try:
        code = root.main(list(arguments), prog_name="fairlead", standalone_mode=False, obj=context)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place where a fault can be told
        return _failed(error)
    return code if isinstance(code, int) else 0


def load(name: str, entry: Command | Verb) -> click.Command:
    """A command from where its module keeps it, or made of a verb's declaration."""
    if isinstance(entry, Verb):
        return loading.make("fairlead.cli.steering:command", click.Command, entry)
    try:
        return loading.load(entry.place, click.Command)
    except ModuleNotFoundError as error:
        module = entry.place.partition(":")[0]
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise errors.NotFound(
            f"not part of this installation: {name}", hint="fairlead --version tells which it is"
        ) from error


def _failed(error: BaseException) -> int:
    match error:
        case errors.FairleadError():
            return _refused(error)
        case click.exceptions.NoArgsIsHelpError():
            click.echo(error.format_message(), err=True)
            return USAGE
        case click.ClickException():
            return _say(_ours(error.format_message()), _usage_hint(error), USAGE)
        case click.Abort() | KeyboardInterrupt():
            return STOPPED
        case _PipeGoneError() | BrokenPipeError():
            return _pipe_gone()
        case _:
            return _unexpected(error)


def _refused(error: errors.FairleadError) -> int:
    if not isinstance(error, errors.Invalid):
        return _say(error.message, error.hint, error.exit_code)
    for each in error.problems:
        _say(str(each), each.hint, error.exit_code)
    return error.exit_code


def _say(message: str, hint: str, code: int) -> int:
    with contextlib.suppress(BrokenPipeError):
        click.echo(f"{click.style('error:', fg='red')} {message}", err=True)
        click.echo(f"{click.style('hint:', fg='cyan')} {hint}", err=True)
    return code


def _ours(message: str) -> str:
    """A message of click's in our manner: lowercase, no full stop, the value last."""
    said = message.partition(_GUESS)[0].strip().removesuffix(".")
    said = re.sub(r"^([^':]+) '([^']*)'$", r"\1: \2", said)
    return said[:1].lower() + said[1:]


def _usage_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return "see fairlead --help"
    path = context.command_path
    if (guess := error.format_message().partition(_GUESS)[2]) and not _asked(error):
        return f"did you mean {guess}"
    group = context.command
    known = group.list_commands(context) if isinstance(group, click.Group) else []
    near = nearest(_asked(error), known)
    return f"did you mean {path} {near}?" if near else f"see {path} --help"


def _asked(error: click.ClickException) -> str:
    """The word that was taken for a command, or nothing."""
    if isinstance(error, click.UsageError) and error.message.startswith("No such command"):
        return error.message.split("'")[1]
    return ""


def _pipe_gone() -> int:
    # The interpreter flushes standard output once more when it ends; nobody is there.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_GONE


def _unexpected(error: BaseException) -> int:
    # Read here, not from the settings: they may be what is broken.
    if os.environ.get("FAIRLEAD_LOG_LEVEL") == "debug":
        traceback.print_exception(error)
    said = f"unexpected {type(error).__name__}: {error}"
    hint = (
        "this is a bug in fairlead; set FAIRLEAD_LOG_LEVEL=debug for the traceback,"
        " and report it where you got fairlead from"
    )
    return _say(said, hint, UNEXPECTED)
