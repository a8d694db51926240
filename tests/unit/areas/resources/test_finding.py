"""What a list and the answer to a creation tell of ids."""

import pytest

from fairlead.areas.resources import finding
from fairlead.areas.resources.domain.reconcile.messages import Declared
from fairlead.areas.resources.finding import Finder
from fairlead.clients.arm.client import Answer, Follow, Question
from tests.unit.areas.resources.domain.test_marks import model


class Silent:
    """An API that nobody should ask."""

    async def ask(self, question: Question) -> Answer:
        raise AssertionError(question)

    async def follow(self, at: Follow, correlation: str = "") -> Answer:
        raise AssertionError(at)


@pytest.mark.parametrize(
    ("location", "body", "given"),
    [
        ("/robots/7", {"id": 8}, "/robots/7"),
        ("", {"id": 8}, "/robots/8"),
        ("", {"robotId": "r1", "id": 8}, "/robots/r1"),
        ("", {"id": "/robots/9"}, "/robots/9"),
        ("/elsewhere/7", {"id": 8}, "/robots/8"),
        ("", {"id": "../secrets"}, ""),
        ("", {"id": True}, ""),
        ("", None, ""),
    ],
)
def test_the_id_that_was_given(location: str, body: object, given: str) -> None:
    finder = Finder(Silent(), model())
    told = Declared("robots", "1", "/robots/{welder}", {})

    assert finder.given(told, Answer(201, body, location=location)) == given


@pytest.mark.parametrize(
    ("body", "paging", "items", "link"),
    [
        ([{"a": 1}, 2], None, [{"a": 1}], ""),
        ({"value": [{"a": 1}], "nextLink": ""}, "nextLink", [{"a": 1}], ""),
        ({"value": [], "nextLink": "/2"}, "nextLink", [], "/2"),
        ({"robots": [{"a": 1}], "count": 1}, None, [{"a": 1}], ""),
        ({"items": [{"a": 1}], "nextPageToken": "x"}, None, None, ""),
        ({"items": [{"a": 1}], "nextPageToken": None}, None, [{"a": 1}], ""),
        ({"left": [], "right": []}, None, None, ""),
        ("text", None, None, ""),
    ],
)
def test_a_page_is_read_only_where_its_end_is_understood(
    body: object, paging: str | None, items: list[object] | None, link: str
) -> None:
    assert finding._page(body, paging) == (items, link)
