"""The web app: layers around routes, all on one context."""

from collections.abc import Sequence

from fastapi import Depends, FastAPI

import fairlead
from fairlead.web import api, auth, health, live, pages, redaction
from fairlead.web import context as contexts
from fairlead.web import errors as web_errors
from fairlead.web.mounts import Mount

DESCRIPTION = """\
Read streams, events, effects and workers; give commands; follow the feed.

Every answer that is no success is `{"error": {"message", "hint", "code"}}`. On loopback no
token is needed until one exists; then send `Authorization: Bearer TOKEN`."""


def create(context: contexts.WebContext, mounts: Sequence[Mount] = ()) -> FastAPI:
    """An app that answers for one engine; the context's layout knows the same mounts."""
    app = described(mounts)
    watch = health.Watch(context)
    app.state.context = context
    app.state.watch = watch
    app.state.feed = live.SharedFeed(context.engine)
    web_errors.install(app, context.layout.refused)
    # Added from the inside out: the last one sees a request first.
    app.add_middleware(auth.Gate, context=context)
    app.add_middleware(web_errors.BodyLimit)
    app.add_middleware(web_errors.Shield, observe=watch.observe, page=context.layout.refused)
    app.add_middleware(pages.Headers)
    return app


def health_of(app: FastAPI) -> FastAPI:
    """Only whether that app lives and is ready, for a port of its own."""
    alone = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    alone.state.watch = app.state.watch
    alone.add_api_route("/healthz", health.healthz)
    alone.add_api_route("/readyz", health.readyz)
    return alone


def described(mounts: Sequence[Mount] = ()) -> FastAPI:
    """The routes alone, enough to describe the API."""
    app = FastAPI(
        title="Fairlead",
        version=fairlead.__version__,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        default_response_class=redaction.RedactedJson,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(auth.refuse_beyond_scope)],
    )
    # The live feed first: /feed/live must not be taken for anything else.
    brought = [router for mount in mounts for router in mount.apis]
    shown = [router for mount in mounts for router in mount.pages]
    for router in (live.router, *brought, api.router, health.router, *shown, pages.router):
        app.include_router(router)
    return app
