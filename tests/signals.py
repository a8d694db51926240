"""Pytest plug-in: signals mean here what they mean in a terminal.

A background job, nohup and some CI start us with SIGINT or SIGHUP ignored. Every program that a
test starts would inherit that, and one that is to end by Ctrl-C would never end.
"""

import signal

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


# Before workers of xdist are started, and in each of them.
def pytest_configure() -> None:
    for number in _ENDING:
        # Whoever handles a signal wanted it so.
        if signal.getsignal(number) is signal.SIG_IGN:
            by_python = number is signal.SIGINT
            signal.signal(number, signal.default_int_handler if by_python else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
