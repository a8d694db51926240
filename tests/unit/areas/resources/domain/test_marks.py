"""Where our mark stands in a resource whose id the API gives, and that it is nobody else's."""

import pytest

from fairlead.areas.resources.domain import marks
from fairlead.areas.resources.domain.model import Model
from tests.simulated_api import description
from tests.unit.areas.resources import swagger

_ID = "/robots/{welder}"


def model(**more: bool) -> Model:
    (found,) = swagger.read(description(**more))
    return Model.of(found)


@pytest.mark.parametrize(
    ("labels", "said", "path"),
    [
        (True, "", ("labels", "fairlead-id")),
        (True, "name", ("name",)),
        (False, "spec.owner", ("spec", "owner")),
        (False, "", None),
    ],
)
def test_it_stands_in_labels_or_where_it_was_said(
    labels: bool,  # noqa: FBT001 - of this test
    said: str,
    path: tuple[str, ...] | None,
) -> None:
    assert marks.path(model(labels=labels), said) == path


def test_it_is_found_again_and_only_under_the_same_name() -> None:
    made = marks.marked(model(), "", _ID, {"name": "a", "labels": {"x": "y"}})

    assert made["labels"]["x"] == "y"
    assert marks.bears(model(), "", _ID, made)
    assert not marks.bears(model(), "", "/robots/{other}", made)
    assert marks.marked(model(labels=False), "", _ID, {"name": "a"}) == {"name": "a"}
