"""A declared verb as a command: its options, and what it asks before it changes anything."""

import io

import click
import pytest

from fairlead.area import Verb
from fairlead.cli import steering
from fairlead.values import Confirmation

PLAIN = Verb("moor", "Moor", "Moor.", "Moor the ship NAME.", "Moor")
FULL = Verb(
    "tow",
    "Tow",
    "Tow.",
    "Tow the ship NAME to REVISION.",
    "Tow",
    confirm=Confirmation("Tow {name} to {revision}?", "Tow?", "It is towed.", "Tow"),
    takes_reason=True,
    takes_revision=True,
)


class Terminal(io.StringIO):
    """A person who has typed an answer."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("verb", "parameters"),
    [
        (PLAIN, ["name", "id_", "as_json"]),
        (FULL, ["name", "revision", "id_", "as_json", "why", "yes"]),
    ],
)
def test_a_command_takes_what_its_verb_takes(verb: Verb, parameters: list[str]) -> None:
    made = steering.command(verb)

    assert [each.name for each in made.params] == parameters
    assert (made.name, made.help) == (verb.name, verb.usage)


def test_a_person_who_says_no_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))

    with pytest.raises(click.Abort):
        steering.command(FULL).main(["{north}", "berlin"], standalone_mode=False)

    said = capsys.readouterr()
    assert said.err == "Tow {north} to berlin? [y/N]: nothing changed\n"
    assert said.out == ""
