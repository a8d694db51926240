"""What resources bring: types read from descriptions, and what keeps each as declared."""

from fairlead.area import Area, Command

_HERE = "fairlead.areas.resources"

RESOURCES = Area(
    name="resources",
    core=f"{_HERE}.core:core",
    commands={
        "resources": Command(
            f"{_HERE}.commands.resources:resources",
            "Keep resources of any described API as declared.",
        )
    },
    nouns={
        "resource": f"{_HERE}.commands.nouns:RESOURCE",
        "resources": f"{_HERE}.commands.nouns:RESOURCE",
    },
    settings=f"{_HERE}.settings:ResourcesSettings",
    platform=f"{_HERE}.host:platform",
    operator=f"{_HERE}.kubernetes.wiring:operator_part",
    web=f"{_HERE}.web:mount",
)
