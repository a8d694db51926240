"""Become the program: run by spawn as `python -I -S launch.py PLAN COMMAND…`.

Between a fork and an exec in a process with threads nothing of Python is safe to run, so
what the program needs before it starts is done here, in a process of its own that keeps
its id through the exec. Standard library only, and only what imports fast.
"""

import json
import os
import resource
import signal
import sys

_KINDS = {
    "memory_bytes": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu_seconds": resource.RLIMIT_CPU,
}
_CANNOT_START = 127


def main(plan: str, command: list[str]) -> None:
    asked = json.loads(plan)
    # Python ignores these from its start, and an exec would hand that on.
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    try:
        if asked["cwd"] is not None:
            os.chdir(asked["cwd"])
        for name, most in asked["limits"].items():
            if most is not None:
                resource.setrlimit(_KINDS[name], (most, most))
        os.execvp(command[0], command)  # noqa: S606 - the point of this file: no shell, same process
    except (OSError, ValueError) as error:
        sys.stderr.write(f"cannot start {command[0]}: {error}\n")
        sys.stderr.flush()
        # Not sys.exit: under a tight memory limit even the way out may fail.
        os._exit(_CANNOT_START)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
