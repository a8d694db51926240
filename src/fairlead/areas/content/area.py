"""What content brings: a service of versioned configuration, and releases of its versions."""

from fairlead.area import Area, Command, Link
from fairlead.areas.content.domain.release import declared_verbs

_HERE = "fairlead.areas.content"

CONTENT = Area(
    name="content",
    core=f"{_HERE}.core:core",
    commands={
        "content": Command(
            f"{_HERE}.commands.content:content", "Serve, check and release versioned content."
        )
    },
    nouns={
        "release": f"{_HERE}.commands.nouns:RELEASE",
        "releases": f"{_HERE}.commands.nouns:RELEASE",
    },
    verbs=declared_verbs.VERBS,
    navigation=(Link("Content", "/releases"),),
    settings=f"{_HERE}.settings:ContentSettings",
    platform=f"{_HERE}.release.host:platform",
    web=f"{_HERE}.web:mount",
)
