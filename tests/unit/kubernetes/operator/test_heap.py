"""What was freed goes back to the system, where the C library can do so."""

import subprocess
import sys

import pytest

from fairlead.kubernetes.operator import heap

_BURST = """
import sys
from fairlead.kubernetes.operator import heap

def resident():
    with open("/proc/self/statm") as told:
        return int(told.read().split()[1]) * 4096

heap.keep_small()
# Every other block stays: the freed ones lie between them, each larger than a page.
blocks = [bytes(20_000) for _ in range(4_000)]
kept = blocks[::2]
full = resident()
del blocks
heap.give_back()
print(full - resident())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_pages_between_what_is_kept_go_back() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _BURST], capture_output=True, text=True, check=True, timeout=60
    )

    assert int(ended.stdout) > 20_000_000


def test_another_c_library_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())

    heap.keep_small()
    heap.give_back()
