"""All parts of a PostgreSQL as people run it in production: found, or installed where they may be.

Run as `python -m tools.servers.high_availability` (make ha, after make cluster, which builds etcd).
"""

import sys

from fairlead import errors
from tools.servers import faketime, patroni, patroni_install, pgbouncer


def install() -> None:
    """Unavailable, with a reason to show, where one of them cannot be had."""
    patroni_install.install()
    patroni.check()
    pgbouncer.find()
    faketime.find()


def main() -> int:
    try:
        install()
    except errors.Unavailable as missing:
        print(f"error: {missing.message}\nhint: {missing.hint}", file=sys.stderr)
        return missing.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
