"""Parts of a PostgreSQL as people run it in production: Patroni, pgbouncer and what they need."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from fairlead import errors

T = TypeVar("T")


def needed(find: Callable[[], T]) -> T:
    """Left out with a reason where it is missing, unless FAIRLEAD_TEST_HA requires it."""
    try:
        return find()
    except errors.Unavailable as missing:
        if os.environ.get("FAIRLEAD_TEST_HA") == "required":
            raise
        pytest.skip(f"{missing.message}; {missing.hint}")
