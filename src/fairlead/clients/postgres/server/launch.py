"""Become another program, under another id, that ends when its starter ends.

Run as `python launch.py STARTER SIGNAL UID GID COMMAND…`. A script of its own and not a
preexec_fn, because Python code between fork and exec can deadlock in a process with
threads (Python 3.12 warns of it, and our warnings are errors). The exec keeps the process
id, so the starter holds the id of the server itself. Standard library only, and only what
imports fast: this runs before every server.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
KEEP_ID = -1


def main(arguments: list[str]) -> None:
    starter, signal_number, uid, gid = map(int, arguments[:4])
    if uid != KEEP_ID:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if signal_number:
        # After the change of id: the kernel forgets the request when credentials change.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal_number)
        # The starter may have died before the request was made: then no signal will come.
        if os.getppid() != starter:
            sys.exit(1)
    command = arguments[4:]
    os.execv(command[0], command)  # noqa: S606 - the point of this file: no shell, the same process


if __name__ == "__main__":
    main(sys.argv[1:])
