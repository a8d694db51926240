"""Lamps in the API and on a page."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from starlette.responses import Response

from fairlead.engine import visibility
from fairlead.web import api as house
from fairlead.web import context as contexts
from fairlead.web import shapes
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link
from tests.toy_area import machine
from tests.toy_area.platform import METER

api = APIRouter(prefix="/api/v1/lamps", tags=["lamps"], responses=house.FAILURES)
pages = APIRouter(include_in_schema=False)


def mount(navigation: Sequence[Link]) -> Mount:
    return Mount("lamps", (api,), (pages,), "tests.toy_area", navigation=navigation)


@api.get("", summary="Lamps, newest first")
async def list_lamps(request: Request, limit: house.Limit = 100) -> shapes.Page[shapes.Stream]:
    which = visibility.StreamFilter(machine.LAMP.name, limit=limit)
    found = await contexts.of(request).engine.read(lambda s: visibility.streams(s, which))
    return shapes.Page(items=[shapes.Stream.of(each) for each in found], next=None)


@pages.get("/lamps")
async def lamps(request: Request) -> Response:
    context = contexts.of(request)
    which = visibility.StreamFilter(machine.LAMP.name)
    found = await context.engine.read(lambda s: visibility.streams(s, which))
    meter = context.services.find(METER)
    watts = meter.watts if meter else 0
    return context.layout.page("lamps/lamps.html", lamps=found, watts=watts)
