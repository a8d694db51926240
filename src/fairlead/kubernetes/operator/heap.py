"""The C library's heap: kept in one piece, and given back after a burst.

A first list of ten thousand objects, or a storm of changes, leaves free pages between those that
are still in use. The C library keeps them for later; a pod is charged for them all the while.
"""

import ctypes

_ARENA_MAX = -8
_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def keep_small() -> None:
    """Before threads start: one arena for all, and large blocks on pages of their own.

    By default each thread gets an arena whose free parts no other uses, and the bound from which
    on a block has its own pages grows with the first page of a list that is freed.
    """
    _call("mallopt", _ARENA_MAX, 1)
    _call("mallopt", _MMAP_THRESHOLD, _LARGE)


def give_back() -> None:
    """Free pages go back to the system; takes some milliseconds for each hundred megabytes."""
    _call("malloc_trim", 0)


def _call(name: str, *arguments: int) -> None:
    # Of glibc; other C libraries go without.
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
