"""The fields of a judge's configuration, named as in Kayenta; `document` makes rules of them.

A field that is not here is refused with its path: a misspelt limit must not be no limit.
"""

from typing import Any, Literal

import msgspec


class Fields(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """What every group of fields has in common."""


class EffectSize(Fields, frozen=True):
    """From which size on a difference counts, and from which on it is critical."""

    measure: Literal["meanRatio", "cles"] = "meanRatio"
    allowed_increase: float | None = None
    allowed_decrease: float | None = None
    critical_increase: float | None = None
    critical_decrease: float | None = None
    detectable: float = 2.0


class Outliers(Fields, frozen=True):
    """Whether samples far outside are left out."""

    strategy: Literal["keep", "remove"] = "keep"
    outlier_factor: float = 3.0


class Canary(Fields, frozen=True):
    """How one metric is judged."""

    direction: Literal["increase", "decrease", "either"] = "either"
    nan_strategy: Literal["remove", "replace"] = "remove"
    critical: bool = False
    must_have_data: bool = False
    muted: bool = False
    effect_size: EffectSize = EffectSize()
    outliers: Outliers = Outliers()
    no_data: Literal["wait", "pass", "fail", "inconclusive"] | None = None


class AnalysisConfigurations(Fields, frozen=True):
    """The one kind of analysis there is."""

    canary: Canary = Canary()


class Metric(Fields, frozen=True):
    """One metric; how it was queried is read by others."""

    name: str
    groups: list[str] | None = None
    analysis_configurations: AnalysisConfigurations = AnalysisConfigurations()
    query: Any = None
    scope_name: Any = None


class ScoreThresholds(Fields, frozen=True):
    """From which score on the release is marginal, and from which on it passes."""

    marginal: float | None = None
    passing: float | None = msgspec.field(default=None, name="pass")


class Classifier(Fields, frozen=True):
    """What each group counts."""

    group_weights: dict[str, float] = {}
    score_thresholds: ScoreThresholds | None = None


class PlannedLooks(Fields, frozen=True):
    """How often the judge looks at the same release, and what it is known to be shown."""

    samples: int | None = None
    every: int = 1
    steps: int = 1
    share: float | None = None


class Judge(Fields, frozen=True):
    """Who judges, and how strictly."""

    name: str = "fairlead"
    confidence: float | None = None
    tolerance: float | None = None
    spread: float | None = None
    plan: PlannedLooks | None = None
    judge_configurations: Any = None


class Config(Fields, frozen=True):
    """A canary configuration; what tells about it and not about judging is let through."""

    metrics: list[Metric]
    classifier: Classifier = Classifier()
    score_thresholds: ScoreThresholds | None = None
    judge: Judge = Judge()
    id: Any = None
    name: Any = None
    description: Any = None
    applications: Any = None
    config_version: Any = None
    templates: Any = None
    created_timestamp: Any = None
    created_timestamp_iso: Any = None
    updated_timestamp: Any = None
    updated_timestamp_iso: Any = None
