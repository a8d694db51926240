"""Each area keeps its word: done means that every id has a test."""

import re

import pytest

from tools import requirements

# How many ids the reference has for each area; a lost line would otherwise go unnoticed.
COUNTS = {"canary": 27, "deployer": 81, "content": 23, "resources": 35, "gitops": 32}
AREAS = {area.name: area for area in requirements.areas()}


def test_an_area_that_is_done_has_a_test_for_every_id() -> None:
    assert requirements.missing(requirements.areas(), requirements.shown()) == ()


def test_every_mark_names_a_known_id() -> None:
    known = requirements.known(requirements.areas())

    unknown = [mark for mark in requirements.shown() if mark.requirement not in known]

    assert unknown == []


@pytest.mark.parametrize(("name", "count"), COUNTS.items())
def test_every_id_of_the_reference_has_its_line(name: str, count: int) -> None:
    assert len(AREAS[name].requirements) == count


@pytest.mark.parametrize("name", COUNTS)
def test_a_line_is_one_sentence_of_its_own(name: str) -> None:
    lines = list(AREAS[name].requirements.values())

    assert [line for line in lines if not re.fullmatch(r"[A-Z][^|\n]{15,139}\.", line)] == []
    assert len(set(lines)) == len(lines)
