"""What rollouts add to the web app."""

from collections.abc import Sequence

from fairlead.areas.rollouts import api, log_api, pages, workload_api
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link


def mount(navigation: Sequence[Link]) -> Mount:
    return Mount(
        name="rollouts",
        # Those of logs first: the others take whatever is left of a path for a name.
        apis=(log_api.router, api.router, workload_api.router),
        pages=(log_api.pages, pages.router),
        package="fairlead.areas.rollouts",
        assets={"rollout.js": "text/javascript"},
        navigation=navigation,
    )
