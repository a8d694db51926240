"""A network of our own, so that addresses of pods and ports of gateways meet nobody else's."""

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator

_NEW_NETWORK = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def network() -> Iterator[None]:
    """Inside, this thread and what it starts have a loopback of their own, and nothing else."""
    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        _call(_LIBC.unshare(_NEW_NETWORK), "unshare")
        _ip("link", "set", "lo", "up")
        yield
    finally:
        _call(_LIBC.setns(home, _NEW_NETWORK), "setns")
        os.close(home)


def address(one: str) -> None:
    """From now on this address is ours, as that of a pod on this node."""
    _ip("addr", "add", f"{one}/32", "dev", "lo")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=10)


def _call(result: int, name: str) -> None:
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
