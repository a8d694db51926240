"""Pytest plug-in: a requirement mark must name requirements that exist.

Loaded by tests/conftest.py. A test with a wrong mark fails before its fixtures are made;
an error at collection would be clearer still, but a worker of xdist cannot report one.
"""

from collections.abc import Iterator

import pytest

from tools import requirements

KNOWN = requirements.known(requirements.areas())
HINT = "hint: the ids stand in tests/requirements/<area>.toml; write them as 'canary R12'"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    wrong = [fault for mark in item.iter_markers("requirement") for fault in _faults(mark)]
    if wrong:
        pytest.fail("\n".join((*wrong, HINT)), pytrace=False)


def _faults(mark: pytest.Mark) -> Iterator[str]:
    if not mark.args or mark.kwargs:
        yield "requirement mark without an id"
    for name in mark.args:
        if name not in KNOWN:
            yield f"unknown requirement: {name!r}"
