"""The command's root: finds a command, runs it, and says what went wrong.

A command's module is loaded when it is called, never for help: the table below holds what
`fairlead --help` shows, so help stays quick however much a command imports. Every failure
leaves through `run`, as an exit code that docs/reference/commands.md lists.
"""

import contextlib
import dataclasses
import difflib
import importlib
import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

import fairlead
from fairlead import errors
from fairlead.cli.surroundings import Surroundings

_GUESS = " Did you mean "
UNEXPECTED = 1
USAGE = 2
STOPPED = 130
PIPE_GONE = 141

EXIT_CODES: Mapping[int, str] = {
    0: "It went well.",
    UNEXPECTED: "An error that we did not foresee: a fault of ours, please report it.",
    USAGE: "The command line is wrong: an unknown command or option, a missing argument.",
    STOPPED: "Stopped by Ctrl-C, or a question was answered with no.",
    PIPE_GONE: "Whoever read the output stopped reading.",
}
"""Besides those of our errors (docs/reference/errors.md)."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A command that is loaded when it is called."""

    path: str
    help: str


COMMANDS: Mapping[str, Entry] = {
    "demo": Entry(
        "fairlead.cli.demo.command:demo", "See a good release go live and a bad one go home."
    ),
    "up": Entry("fairlead.cli.serve:up", "Run the control plane with its page on this machine."),
    "worker": Entry("fairlead.cli.serve:worker", "Run a worker beside others on a shared store."),
    "operator": Entry(
        "fairlead.cli.operator:operator", "Run the operator for objects of a Kubernetes cluster."
    ),
    "deploy": Entry("fairlead.cli.deploy:deploy", "Run a workload, or a new version of it."),
    "get": Entry("fairlead.cli.reading:get", "Show rollouts or streams, or one of them."),
    "events": Entry("fairlead.cli.reading:events", "Show what happened to a stream."),
    "watch": Entry("fairlead.cli.reading:watch", "Show rollouts or events as they change."),
    "approve": Entry("fairlead.cli.steering:approve", "Let a rollout's step go on that waits."),
    "promote": Entry("fairlead.cli.steering:promote", "Give a rollout's version all traffic now."),
    "pause": Entry("fairlead.cli.steering:pause", "Hold a rollout; it takes no step up."),
    "resume": Entry("fairlead.cli.steering:resume", "Let a paused rollout go on."),
    "abort": Entry("fairlead.cli.steering:abort", "Bring all traffic of a rollout home."),
    "retry": Entry("fairlead.cli.steering:retry", "Try again what was taken back."),
    "rollback": Entry("fairlead.cli.steering:rollback", "Bring an earlier revision back."),
    "submit": Entry("fairlead.cli.submit:submit", "Hand a command to a stream."),
    "outbox": Entry("fairlead.cli.outbox:outbox", "List, retry or discard effects."),
    "store": Entry("fairlead.cli.store:store", "Migrate, inspect or archive the store."),
    "projections": Entry("fairlead.cli.projections:projections", "Build views again from events."),
    "token": Entry("fairlead.cli.tokens:token", "Make, list or revoke API tokens."),
    "judge": Entry("fairlead.cli.judge:judge", "Judge samples of an experiment against control."),
}


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

    Data goes to standard output, talk to standard error. A failure ends in a hint and in a
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
    given = ctx.find_object(Surroundings) or Surroundings()
    ctx.obj = dataclasses.replace(given, overrides={**given.overrides, **overrides})


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str], surroundings: Surroundings | None = None) -> int:
    """Run one command line; its exit code."""
    try:
        code = root.main(
            list(arguments), prog_name="fairlead", standalone_mode=False, obj=surroundings
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place where a fault can be told
        return _failed(error)
    return code if isinstance(code, int) else 0


def load(name: str, entry: Entry) -> click.Command:
    """A command from where its module keeps it."""
    module, _, attribute = entry.path.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise errors.NotFound(
            f"not part of this installation: {name}", hint="fairlead --version tells which it is"
        ) from error
    assert isinstance(found, click.Command)
    return found


def _failed(error: BaseException) -> int:
    match error:
        case errors.FairleadError():
            return _say(error.message, error.hint, error.exit_code)
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
    near = difflib.get_close_matches(_asked(error), known, n=1)
    return f"did you mean {path} {near[0]}?" if near else f"see {path} --help"


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
        "this is a fault of fairlead; set FAIRLEAD_LOG_LEVEL=debug for the traceback,"
        " and report it where you got fairlead from"
    )
    return _say(said, hint, UNEXPECTED)
