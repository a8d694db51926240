"""Named queries: SQL lives in files, each statement with a name and a line of purpose.

-- load_streams: the streams of a batch as they stand
SELECT …;
"""

import importlib.resources
import re
from collections.abc import Mapping

_HEAD = re.compile(r"^-- (?P<name>[a-z_]+): (?P<purpose>.+)$", re.MULTILINE)


def load(dialect: str) -> Mapping[str, str]:
    """Every statement of one dialect by name."""
    folder = importlib.resources.files(__package__) / "queries"
    return parse((folder / f"{dialect}.sql").read_text())


def parse(text: str) -> dict[str, str]:
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head["name"]: text[head.end() : end].strip().rstrip(";")
        for head, end in zip(heads, ends, strict=True)
    }
