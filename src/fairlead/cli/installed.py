"""The installation as bootstrap makes it, for commands that run it and do not only ask it."""

from fairlead import bootstrap
from fairlead.console import options


def installation() -> bootstrap.Installation:
    found = options.installation()
    assert isinstance(found, bootstrap.Installation)
    return found
