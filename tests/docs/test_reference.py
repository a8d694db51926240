"""Nothing that a user can set, type or meet is missing from the reference."""

import inspect
from pathlib import Path

import click

from fairlead import errors, settings
from fairlead.areas.rollouts.domain.declared_verbs import VERBS
from fairlead.cli import app, judge
from tools import reference

PAGES = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_every_setting_is_told_with_its_default() -> None:
    text = (PAGES / "settings.md").read_text(encoding="utf-8")

    missing = [
        each.variable for each in settings.described() if f"| `{each.variable}` |" not in text
    ]

    assert missing == []


def test_every_command_and_option_is_told() -> None:
    text = (PAGES / "commands.md").read_text(encoding="utf-8")

    missing = [f"fairlead {name}" for name in app.COMMANDS if f"## `fairlead {name}`" not in text]
    silent = [
        f"{name} {option.opts[-1]}"
        for name, command in _commands()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]

    assert missing == []
    assert silent == [], "an option says what it is for"


def test_every_command_says_what_it_does() -> None:
    assert [name for name, command in _commands() if not command.help] == []


def test_every_verb_of_a_rollout_is_told_with_its_route_and_its_annotation() -> None:
    route = (PAGES / "web.md").read_text(encoding="utf-8").partition("/NAME/VERB`")[2]
    annotations = (PAGES / "canaries.md").read_text(encoding="utf-8").partition("that request")[2]

    assert [name for name in VERBS if f"`{name}`" not in route.partition("\n")[0]] == []
    annotated = [name for name, verb in VERBS.items() if not verb.deletes]
    assert [
        name for name in annotated if f"`{name}`" not in annotations.partition("\n## ")[0]
    ] == []


def test_every_error_has_its_row_and_its_exit_code() -> None:
    text = (PAGES / "errors.md").read_text(encoding="utf-8")
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.FairleadError)
    ]

    assert len(kinds) > 5
    for kind in kinds:
        assert f"| `{kind.__name__}` | {kind.exit_code} | {kind.http_status} | " in text
        assert kind.exit_code in reference.exit_codes()


def test_every_exit_code_is_told() -> None:
    text = (PAGES / "commands.md").read_text(encoding="utf-8")

    assert set(app.EXIT_CODES) < set(reference.exit_codes())
    assert set(judge.EXIT_CODES.values()) < set(reference.exit_codes())
    assert [code for code in reference.exit_codes() if f"\n| {code} | " not in text] == []


def _commands() -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, entry in app.COMMANDS.items():
        try:
            command = app.load(name, entry)
        except errors.NotFound:
            continue  # its module is being written elsewhere
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {below}", each) for below, each in command.commands.items()]
    return found
