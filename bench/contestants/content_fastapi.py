"""The same service as FastAPI's tutorial would have it: `python content_fastapi.py PORT FOLDER…`.

What is answered is data, which FastAPI writes as JSON for every request.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, Header, HTTPException

from fairlead.areas.content.domain import identity, semver
from fairlead.areas.content.domain.population import Channel, Population, Share

app = FastAPI()
Entries = list[tuple[Any, dict[str, Any]]]


def load(folder: Path) -> Entries:
    rows = json.loads((folder / "cluster_version_mapping.json").read_bytes())
    return [(semver.parse(v).key, json.loads((folder / file).read_bytes())) for v, file in rows]


def main(port: int, salt: str, share: int, folders: list[str]) -> None:
    stable, canary = (load(Path(each)) for each in folders)
    channels = {Channel.STABLE: stable, Channel.CANARY: canary}
    population = Population(salt, Share(share))

    @app.get("/api/gathering/v2/{version}/gathering_rules")
    async def rules(version: str, user_agent: Annotated[str, Header()] = "") -> dict[str, Any]:
        entries = channels[population.channel(identity.cluster(user_agent))]
        asked = semver.parse(version).key
        for start, found in reversed(entries):
            if start <= asked:
                return found
        raise HTTPException(404)

    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        log_level="error",
        access_log=False,
        timeout_keep_alive=120,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
