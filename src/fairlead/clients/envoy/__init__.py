"""A real Envoy on this machine: traffic between versions of a program, by file.

    proxy = Proxy(folder, supervisor, Listen(port=8080))
    await proxy.start()
    await proxy.apply(Table((Version("v1", (8081,)), Version("v2", (8082,))), (site,)))
    numbers = between(before, await proxy.read())["v2"]

Flow: table (what is wanted) -> config (what Envoy reads) -> proxy (files, renamed into
place, and Envoy's own word that it took them) -> traffic (what came of it).
"""

from fairlead.clients.envoy.config import Listen
from fairlead.clients.envoy.proxy import Proxy
from fairlead.clients.envoy.table import (
    ByCookie,
    ByHeader,
    CookieIs,
    HeaderIs,
    Mirror,
    Rule,
    Site,
    Table,
    Version,
    Weight,
)
from fairlead.clients.envoy.traffic import Counts, Numbers, Reading, between

__all__ = [
    "ByCookie",
    "ByHeader",
    "CookieIs",
    "Counts",
    "HeaderIs",
    "Listen",
    "Mirror",
    "Numbers",
    "Proxy",
    "Reading",
    "Rule",
    "Site",
    "Table",
    "Version",
    "Weight",
    "between",
]
