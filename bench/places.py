"""Where contestants keep their data: a fresh SQLite file or PostgreSQL database for each run.

Both lie in the temporary folder, on the same disk; fsync is on for all of them.
"""

import contextlib
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairlead.clients.postgres.server.running import PostgresServer

# 256 clients of pgbench, and some for everybody else.
_SETTINGS = {"max_connections": "600"}


@dataclass(frozen=True, slots=True)
class Places:
    """A folder and a server that last for one benchmark."""

    folder: Path
    server: PostgresServer

    @contextlib.contextmanager
    def fresh(self, store: str) -> Iterator[str]:
        """A URL or path that nobody has used, gone afterwards."""
        name = f"bench_{uuid.uuid4().hex[:12]}"
        if store == "sqlite":
            yield str(self.folder / f"{name}.db")
            return
        try:
            yield self.server.create_database(name)
        finally:
            self.server.drop_database(name)


@contextlib.contextmanager
def open_places() -> Iterator[Places]:
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-bench-") as folder,
        PostgresServer(settings=_SETTINGS) as server,
    ):
        yield Places(Path(folder), server)
