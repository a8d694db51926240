"""What all pages share: the frame with its navigation, templates and assets, of every area."""

import importlib.resources
import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import jinja2
from starlette.responses import RedirectResponse, Response

from fairlead import errors
from fairlead.web import redaction
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link

_HOME = "fairlead.web"
_ASSETS = {
    "live.js": "text/javascript",
    "verbs.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}
_STREAMS = Link("Streams", "/streams")


class Layout:
    """The frame around every page of one app."""

    def __init__(self, mounts: Sequence[Mount] = ()) -> None:
        links = [link for mount in mounts for link in mount.navigation]
        self._files = dict.fromkeys(_ASSETS, _HOME)
        self._types = dict(_ASSETS)
        for mount in mounts:
            self._files |= dict.fromkeys(mount.assets, mount.package)
            self._types |= mount.assets
        self._templates = _environment(mounts)
        self._templates.globals["navigation"] = [*links, _STREAMS]

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A template's text with these values, never kept by a browser."""
        text = self._templates.get_template(template).render(
            {"error": None, "signed_in": False, **values}
        )
        headers = {"Cache-Control": "no-store"}
        return Response(text, status, headers, media_type="text/html")

    def refused(self, error: errors.FairleadError) -> Response:
        """A person in front of a browser gets a page, not JSON."""
        if isinstance(error, errors.Unauthorised) and error.http_status == 401:  # noqa: PLR2004 - the status
            return RedirectResponse("/login", 303)
        return self.page("error.html", status=error.http_status, error=error)

    def asset(self, name: str) -> Response:
        if name not in self._files:
            raise errors.NotFound(f"no such asset: {name[:80]}", hint="start from /")
        headers = {"Cache-Control": "no-cache"}
        content = (importlib.resources.files(self._files[name]) / "assets" / name).read_bytes()
        return Response(content, headers=headers, media_type=self._types[name])


def _environment(mounts: Sequence[Mount]) -> jinja2.Environment:
    areas = {each.name: jinja2.PackageLoader(each.package) for each in mounts if each.package}
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(_HOME), jinja2.PrefixLoader(areas)]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=redaction.shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"moment": _moment, "compact": _compact, "span": _span}
    made.filters["spoken"] = _spoken
    return made


def _moment(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S} UTC"


def _span(value: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3 h 5 min."""
    seconds = round(value)
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"


def _spoken(name: str) -> str:
    """An event's name as words: `Share set`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
