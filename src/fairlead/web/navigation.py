"""How people find a page; light, for `fairlead --help` reads what areas bring."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the page's navigation."""

    title: str
    path: str
