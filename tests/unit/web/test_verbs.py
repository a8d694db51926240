"""Verbs as buttons: what asks before it is sent, and what it asks for."""

from fairlead.values import Confirmation, Verb
from fairlead.web import verbs

PLAIN = Verb("approve", "Approve", "help", "usage", "Approve")
ASKS = Verb(
    *("abort", "Abort", "help", "usage", "Abort", "danger"),
    confirm=Confirmation("Sure?", "Abort?", "It ends.", "Abort it"),
    takes_reason=True,
)


def test_a_verb_with_a_long_way_back_asks() -> None:
    (plain, nothing), (asks, dialog) = verbs.buttons([PLAIN, ASKS])

    assert (plain, nothing, asks) == (PLAIN, None, ASKS)
    assert dialog == {
        "title": "Abort?",
        "text": "It ends.",
        "yes": "Abort it",
        "danger": True,
        "why": True,
        "revision": False,
    }
