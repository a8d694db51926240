"""`fairlead operator` with the sample kind: what the installed one does with its own.

Run as `python -m tests.operator.entry operator --kubeconfig FILE ...`.
"""

import sys

from fairlead import bootstrap
from fairlead.cli import app
from fairlead.cli.surroundings import Surroundings
from tests.operator.flotilla import KIND

if __name__ == "__main__":
    cast = Surroundings(cast=lambda: bootstrap.Cast(kinds=[KIND]))
    sys.exit(app.run(sys.argv[1:], cast))
