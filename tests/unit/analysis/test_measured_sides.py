"""Counts with requests and histograms, as a document writes them."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.analysis import document
from fairlead.analysis.samples import Counted, Histogram


def read(side: Any, judge: str = "fairlead") -> Any:
    config = {"metrics": [{"name": "errors"}], "judge": {"name": judge}}
    content = {"config": config, "control": {"errors": side}, "experiment": {}}
    return document.read(content).control["errors"]


def test_the_three_forms_beside_a_list() -> None:
    assert read({"events": [1, None], "requests": [9, 8]}) == Counted((1, 0), (9, 8))
    assert read({"failures": [1], "requests": [4]}).rates == [75.0]
    assert read({"edges": [1, 2.5], "counts": [[1, 2, 3]]}) == Histogram((1.0, 2.5), ((1, 2, 3),))


@pytest.mark.parametrize(
    ("side", "problem"),
    [
        ({"events": [1]}, "an object with events and requests"),
        ({"events": [1], "requests": [2, 3]}, "1 moments with events, but 2 with requests"),
        ({"events": [3], "requests": [2]}, "more events than requests at moment 0: 3 of 2"),
        ({"events": [0.5], "requests": [2]}, "0.5 is no count"),
        ({"events": ["1"], "requests": [2]}, "'1' is no number"),
        ({"events": 1, "requests": [2]}, "events is no list"),
        ({"edges": [2, 1], "counts": []}, "edges in rising order"),
        ({"edges": [1], "counts": [[1]]}, "moment 0 needs one count more than there are edges"),
        ({"events": [0] * 20_001, "requests": [1]}, "more than 20000 moments in events"),
    ],
)
def test_refused_with_what_is_wrong(side: Any, problem: str) -> None:
    with pytest.raises(errors.Rejected) as caught:
        read(side)

    assert problem in caught.value.message
    assert caught.value.message.endswith("control.errors")


def test_kayentas_judge_takes_samples_only() -> None:
    with pytest.raises(errors.Rejected, match="the kayenta judge takes a list of samples"):
        read({"events": [1], "requests": [9]}, judge="kayenta")
