"""The shop with its goods in a PostgreSQL, where a deployment told it to look.

    GOODS_DATABASE_FILE=… PORT=8081 python -m fairlead.cli.demo.stocked_shop --version v2

Version 1 knows names and prices; every later one asks for the stock too, which only its migration
brings: without that it would not start.
"""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import psycopg

from fairlead.cli.demo import shop

VARIABLE = "GOODS_DATABASE_FILE"
_OF_V1 = "SELECT name, price FROM goods ORDER BY price"
_LATER = "SELECT name, price, stock FROM goods ORDER BY price"


def goods(version: str, credentials: Path) -> list[dict[str, Any]]:
    url = json.loads(credentials.read_text())["dburl"]
    with psycopg.connect(url, row_factory=psycopg.rows.dict_row) as database:
        return database.execute(_OF_V1 if version == "v1" else _LATER).fetchall()


if __name__ == "__main__":
    chosen = shop.parse()
    stocked = goods(chosen.version, Path(os.environ[VARIABLE]))
    asyncio.run(shop.run(shop.Shop(chosen, stocked), chosen.port))
