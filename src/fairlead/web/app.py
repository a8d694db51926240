"""The web app: layers around routes, all on one context."""

from fastapi import FastAPI

import fairlead
from fairlead.web import api, auth, health, live, pages, rollout_pages, rollouts, workloads
from fairlead.web import context as contexts
from fairlead.web import errors as web_errors

DESCRIPTION = """\
Read streams, events, effects and workers; give commands; follow the feed.

Every answer that is no success is `{"error": {"message", "hint", "code"}}`. On loopback no
token is needed until one exists; then send `Authorization: Bearer TOKEN`."""


def create(context: contexts.Context) -> FastAPI:
    """An app that answers for one engine."""
    app = described()
    watch = health.Watch(context)
    app.state.context = context
    app.state.watch = watch
    app.state.feed = live.SharedFeed(context.engine)
    web_errors.install(app, pages.refused)
    # Added from the inside out: the last one sees a request first.
    app.add_middleware(auth.Gate, context=context)
    app.add_middleware(web_errors.BodyLimit)
    app.add_middleware(web_errors.Shield, observe=watch.observe, page=pages.refused)
    app.add_middleware(pages.Headers)
    return app


def described() -> FastAPI:
    """The routes alone, enough to describe the API."""
    app = FastAPI(
        title="Fairlead",
        version=fairlead.__version__,
        description=DESCRIPTION,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    # The live feed first: /feed/live must not be taken for anything else.
    apis = (live.router, rollouts.router, workloads.router, api.router, health.router)
    for router in (*apis, rollout_pages.router, pages.router):
        app.include_router(router)
    return app
