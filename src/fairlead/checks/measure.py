"""One round of checks: each is answered by whoever the registry names, and then judged."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fairlead import errors
from fairlead.analysis import conditions, policy
from fairlead.analysis.samples import Series
from fairlead.checks import look_plan, verdicts
from fairlead.checks.registry import Registry
from fairlead.checks.spec import Check, CheckKind, Finding, When
from fairlead.checks.subject import Subject
from fairlead.engine import outbox

_JUDGES = ThreadPoolExecutor(max_workers=2, thread_name_prefix="judge")
"""Few: they share one interpreter with everything else, and others wait their turn here."""


@dataclass(frozen=True, slots=True)
class Round:
    """The checks that are asked at one moment about one release."""

    registry: Registry
    about: Subject
    now: dt.datetime

    async def findings(self, checks: Sequence[Check]) -> tuple[Finding, ...]:
        # At once: one slow answer after the other would be later than the round is awaited.
        return tuple(await outbox.together(self._find(check) for check in checks))

    async def _find(self, check: Check) -> Finding:
        try:
            match check.kind:
                case CheckKind.GATE:
                    is_open, said = await self.registry.gate(check).is_open(check, self.about)
                    return verdicts.of_gate(check, is_open=is_open, said=said)
                case CheckKind.JUDGE:
                    series = await self.registry.comparing(check).compare(check, self.about)
                    # Hundreds of metrics take seconds: leases and pages must not wait for them.
                    loop = asyncio.get_running_loop()
                    return await loop.run_in_executor(_JUDGES, self._compared, check, series)
                case CheckKind.METRIC:
                    answer = await self.registry.source(check).ask(check, self.about)
        except errors.FairleadError as error:
            # What cannot be asked is an answer too: it is counted, and its limit ends it.
            answer = conditions.Unanswered(f"{error.message}; {error.hint}", check.kind.value)
        return verdicts.of_answer(check, answer, window_over=self._is_over(check))

    def _compared(self, check: Check, series: Series) -> Finding:
        plan = look_plan.of(check, self.about)
        return verdicts.of_comparison(check, policy.summarize(series, check.judge, plan))

    def _is_over(self, check: Check) -> bool:
        """Whether a whole window of the check has passed: silence is no news until then."""
        return check.when is When.START or self.now >= self.about.since + check.span
