"""Events written out from their stored text say what the model says."""

from datetime import UTC, datetime

import pytest

from fairlead.engine import messages, visibility
from fairlead.web import event_json, shapes

AT = datetime(2030, 1, 1, 12, 0, 0, 123_000, tzinfo=UTC)
STORED = ["{}", '{"a":[1,2.5,null,"é \\u2028 \\n"]}', '"text"', "not JSON", '{"half":']


def view(data: object) -> visibility.EventView:
    name = messages.stream_name("depot", "a")
    return visibility.EventView(name, 3, "Sent", 1, data, "cause", AT, visibility.Place(5, 7))


@pytest.mark.parametrize("stored", STORED)
def test_one_event_is_what_its_model_says(stored: str) -> None:
    model = shapes.Event.of(view(visibility.plain(stored)))

    written = event_json.event(view(visibility.raw(stored)))

    assert shapes.Event.model_validate_json(written) == model
    assert b"\n" not in written


def test_a_page_is_what_its_model_says() -> None:
    stored = [view(visibility.raw(text)) for text in STORED]
    items = [shapes.Event.of(view(visibility.plain(text))) for text in STORED]

    written = event_json.page(stored, "5.7")

    page = shapes.Page[shapes.Event]
    assert page.model_validate_json(written) == page(items=items, next="5.7")
