"""What an area adds to the web app: routes, templates and assets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fastapi import APIRouter

from fairlead.web.navigation import Link


@dataclass(frozen=True, slots=True)
class Mount:
    """One area's part of the API and the page."""

    name: str
    """Its templates are called by it: `name/template.html`."""

    apis: Sequence[APIRouter] = ()
    pages: Sequence[APIRouter] = ()
    package: str = ""
    """Where its folders `templates` and `assets` lie."""

    assets: Mapping[str, str] = field(default_factory=dict)
    """Names of files, each with its media type."""

    navigation: Sequence[Link] = ()
