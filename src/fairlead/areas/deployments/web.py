"""What deployments add to the web app."""

from collections.abc import Sequence

from fairlead.areas.deployments import deployment_api, pages, verb_api
from fairlead.areas.deployments.registry import api as registry_api
from fairlead.areas.deployments.registry import pages as registry_pages
from fairlead.areas.deployments.triggers import api as triggers_api
from fairlead.areas.deployments.triggers import hooks
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link


def mount(navigation: Sequence[Link]) -> Mount:
    apis = (
        *(deployment_api.router, verb_api.router),
        *(registry_api.router, triggers_api.router, hooks.router),
    )
    return Mount(
        name="deployments",
        apis=apis,
        pages=(pages.router, registry_pages.router),
        package="fairlead.areas.deployments",
        navigation=navigation,
    )
