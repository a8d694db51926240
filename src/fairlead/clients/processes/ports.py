"""Find a port for a program, and see whether one is taken."""

import socket
from collections.abc import Collection

from fairlead import errors
from fairlead.clients.processes.health import HOST
from fairlead.clients.processes.program import Program

_TRIES = 50


def choose(program: Program, last: int, given: Collection[int]) -> int:
    """The program's own port, the one it had, or a free one that was given to nobody yet."""
    if program.port is not None:
        if not is_free(program.port):
            raise errors.Conflict(
                f"port already taken: {program.port}",
                hint=f"stop what listens there, or give {program.name} another port",
            )
        return program.port
    if last and last not in given and is_free(last):
        return last
    return free(given)


def free(given: Collection[int]) -> int:
    for _ in range(_TRIES):
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            port: int = probe.getsockname()[1]
        if port not in given:
            return port
    raise errors.Unavailable("no free port on this machine", hint="stop programs that hold many")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Connections that are only fading away do not hold a port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
