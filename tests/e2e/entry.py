"""`fairlead up` or `worker` with the sample machines: what the installed one does with its own.

Run as `python -m tests.e2e.entry up|worker`.
"""

import sys

from fairlead import bootstrap
from fairlead.cli import serve
from tests.unit.web import rig

if __name__ == "__main__":
    serve.run(bootstrap.settings(), rig.CAST, pages=sys.argv[1] == "up")
