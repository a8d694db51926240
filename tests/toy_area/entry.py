"""The program with one more entry in its catalogue, and nothing else changed.

Run as `python -m tests.toy_area.entry ARGUMENTS…`.
"""

import sys

from fairlead import catalog, loading
from tests.toy_area.area import LAMPS

if __name__ == "__main__":
    catalog.AREAS = (*catalog.AREAS, LAMPS)
    # Late, as the real entry is read before anything else is.
    sys.exit(loading.make("fairlead.cli.app:run", int, sys.argv[1:]))
