"""Pytest plug-in: a requirement mark must name requirements that exist.

Loaded by tests/conftest.py. A wrong id fails the run at collection, before any test.
"""

from collections.abc import Iterator

import pytest

from tools import requirements


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    known = requirements.known(requirements.areas())
    wrong = sorted({fault for item in items for fault in _faults(item, known)})
    if wrong:
        hint = "hint: the ids stand in tests/requirements/<area>.toml, as 'canary R12'"
        raise pytest.UsageError("\n".join((*wrong, hint)))


def _faults(item: pytest.Item, known: frozenset[str]) -> Iterator[str]:
    for mark in item.iter_markers("requirement"):
        if not mark.args or mark.kwargs:
            yield f"requirement mark without an id: {item.nodeid}"
        for name in mark.args:
            if name not in known:
                yield f"unknown requirement {name!r} in the mark of {item.nodeid}"
