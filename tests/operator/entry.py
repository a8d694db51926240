"""`fairlead operator` with the sample kind: what the installed one does with its own.

Run as `python -m tests.operator.entry operator --kubeconfig FILE ...`.
"""

import sys

from fairlead import bootstrap
from fairlead.cli import app
from fairlead.console.context import CliContext
from tests.operator.sample_kind import KIND

if __name__ == "__main__":
    cast = CliContext(installation=lambda: bootstrap.Installation(kinds=[KIND]))
    sys.exit(app.run(sys.argv[1:], cast))
