"""What resources bring: descriptions of APIs, read as types of resources."""

from fairlead.area import Area, Command

_HERE = "fairlead.areas.resources"

RESOURCES = Area(
    name="resources",
    core=f"{_HERE}.core:core",
    commands={
        "resources": Command(
            f"{_HERE}.commands.resources:resources", "Read what APIs describe as resources."
        )
    },
    settings=f"{_HERE}.settings:ResourcesSettings",
)
