"""What an area adds to the web app."""

from fairlead import loading
from fairlead.area import Area
from fairlead.web.mounts import Mount


def load(area: Area) -> Mount | None:
    """None where the area has neither API nor pages."""
    return loading.make(area.web, Mount, area.navigation) if area.web else None
