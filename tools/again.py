"""Only what failed in the last run, one test after the other: `make test-again`.

pytest's own `--last-failed` loses tests of a group: xdist writes their ids with the group behind
an `@`, and without xdist no test has such an id.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

FAILED = Path(".pytest_cache/v/cache/lastfailed")
_GROUP = re.compile(r"@[\w-]+$")


def plain(ids: Iterable[str]) -> list[str]:
    """The ids as a run without groups knows them, each once."""
    return list(dict.fromkeys(_GROUP.sub("", each) for each in ids))


def main() -> int:
    failed = plain(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not failed:
        print("no test failed in the last run")
        return 1
    return subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
