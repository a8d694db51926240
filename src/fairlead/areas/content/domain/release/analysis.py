"""The checks of a step: which are due, and how all of them stand together."""

import datetime as dt
from collections.abc import Sequence

from fairlead.analysis import limits
from fairlead.analysis.limits import MetricStanding, Standing, Tally
from fairlead.areas.content.domain.release.state import Round
from fairlead.checks.spec import Check


def conclusion(checks: Sequence[Check], round_: Round, *, over: bool) -> Standing:
    """How they stand; `over` says that the time of this step has passed."""
    return limits.conclude([_standing(check, round_, over=over) for check in checks])


def due(checks: Sequence[Check], round_: Round) -> dict[str, dt.datetime]:
    """When each is measured next; one that is done is not among them."""
    moments = {check.name: _due(check, round_) for check in checks}
    return {name: at for name, at in moments.items() if at is not None}


def _standing(check: Check, round_: Round, *, over: bool) -> MetricStanding:
    tally = round_.tallies.get(check.name, Tally())
    # One that is measured without end ends with its step, but not before its first measurement.
    ending = over and check.limits.most is None and tally.count > 0
    found = limits.stand(check.limits, tally, ending=ending)
    told = "; ".join(filter(None, (found.reason, round_.reasons.get(check.name, ""))))
    return MetricStanding(check.name, Standing(found.phase, told), check.dry_run)


def _due(check: Check, round_: Round) -> dt.datetime | None:
    tally, measured = round_.tallies.get(check.name, Tally()), round_.measured.get(check.name)
    if measured is not None and tally.last is None:
        # There was nothing to count: no data yet, or a gate that is closed.
        return measured + (check.limits.interval or limits.RETRY_AFTER_ERROR)
    return limits.next_due(check.limits, tally, round_.started, measured)
