"""What resources add to the web app."""

from collections.abc import Sequence

from fairlead.areas.resources import api, push
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link


def mount(navigation: Sequence[Link]) -> Mount:
    return Mount(name="resources", apis=(api.router, push.router), navigation=navigation)
