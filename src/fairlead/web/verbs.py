"""Verbs as the buttons of a page, and what verbs.js asks before it sends one."""

from collections.abc import Iterable

from fairlead.values import Verb

Button = tuple[Verb, dict[str, str | bool] | None]


def buttons(verbs: Iterable[Verb]) -> list[Button]:
    """Each with its dialog; None where it asks nothing."""
    return [(verb, dialog(verb)) for verb in verbs]


def dialog(verb: Verb) -> dict[str, str | bool] | None:
    if verb.confirm is None:
        return None
    return {
        "title": verb.confirm.title,
        "text": verb.confirm.text,
        "yes": verb.confirm.yes,
        "danger": verb.tone == "danger",
        "why": verb.takes_reason,
        "revision": verb.takes_revision,
    }
