"""What content adds to the web app."""

from collections.abc import Sequence

from fairlead.areas.content import api, pages
from fairlead.web.mounts import Mount
from fairlead.web.navigation import Link


def mount(navigation: Sequence[Link]) -> Mount:
    return Mount(
        name="content",
        apis=(api.router,),
        pages=(pages.router,),
        package="fairlead.areas.content",
        navigation=navigation,
    )
