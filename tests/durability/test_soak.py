"""The soak's short form: every fault that needs no minute of waiting, once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import ha
from tests.durability import soak
from tools.servers import faketime, patroni

PLAN = soak.Plan(
    minutes=0.5, faults=soak.SHORT, calm_seconds=1.0, order_seconds=0.5, sample_seconds=5.0
)


@pytest.mark.ha
async def test_a_short_soak_loses_and_doubles_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    ha.needed(patroni.check)
    ha.needed(faketime.find)
    lines: list[str] = []

    report = await soak.run(PLAN, tmp_path, lines.append)

    record_property("soak", "\n".join([*lines, soak.summary(report)]))
    assert (report.lost, report.doubled, report.fault) == (0, 0, "")
    assert report.expected > 0
    assert [*report.stood_still] == [*soak.SHORT]


@pytest.mark.parametrize(
    "report",
    [soak.Report(lost=1), soak.Report(doubled=1), soak.Report(fault="a row is missing")],
    ids=["lost", "doubled", "store"],
)
def test_a_report_with_any_fault_is_not_clean(report: soak.Report) -> None:
    assert not report.is_clean
    assert soak.Report().is_clean
