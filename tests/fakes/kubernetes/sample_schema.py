"""A kind that uses all that a definition can say."""

import dataclasses
import enum
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from fairlead.kubernetes.objects import Resource
from fairlead.kubernetes.schema import Column, KindSchema, Rule, keyed

Share = Annotated[int, msgspec.Meta(ge=0, le=100)]


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """One step of the way."""

    share: Share
    wait_seconds: Annotated[int, msgspec.Meta(gt=0)] = 60


class Mode(enum.Enum):
    AUTO = "Auto"
    MANUAL = "Manual"


class GadgetSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A gadget, as asked for.

    More words that no user needs.
    """

    __rules__: ClassVar[tuple[Rule, ...]] = (
        Rule("self.steps.all(s, s.share <= 50)", "no step over half", path=".steps"),
    )

    image: Annotated[str, msgspec.Meta(min_length=1, max_length=500, pattern="^[a-z].*$")]
    steps: Annotated[list[Step], msgspec.Meta(max_length=20)]
    mode: Mode = Mode.AUTO
    sort: Literal["fast", "slow"] = "slow"
    port: int | str | None = None
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    crew: Annotated[list[Step], msgspec.Meta(max_length=5, extra_json_schema=keyed("share"))] = (
        msgspec.field(default_factory=list)
    )
    extra: Any = None
    ratio: float | None = None
    paused: bool = False


@dataclasses.dataclass(frozen=True)
class GadgetStatus:
    phase: str = ""
    since: datetime | None = None


GADGET = Resource("tests.fairlead.dev", "v1alpha1", "gadgets", "Gadget")
GADGETS = KindSchema(
    GadgetSpec,
    GadgetStatus,
    short_names=("shp",),
    categories=("all",),
    columns=(Column("Phase", ".status.phase"), Column("Age", ".metadata.age", "date", priority=1)),
    rules=(Rule("self.metadata.name.size() <= 40", "name too long"),),
)
