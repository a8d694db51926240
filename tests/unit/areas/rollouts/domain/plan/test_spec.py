"""A spec's times have an end: no door, no row and no status brings one without."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from fairlead import errors
from fairlead.analysis.limits import Limits
from fairlead.areas.rollouts.domain import messages, status_codec
from fairlead.areas.rollouts.domain.machine import ROLLOUT
from fairlead.areas.rollouts.domain.plan.spec import Spec, Version
from fairlead.areas.rollouts.domain.plan.strategy import Pace, Strategy
from fairlead.checks.spec import Check
from fairlead.engine import codec
from fairlead.values import LONGEST, Percent
from tests.unit.areas.rollouts.domain.stories import SPEC, live

TOO_LONG = LONGEST + dt.timedelta(seconds=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Spec(deadline=TOO_LONG),
        lambda: Spec(patience=TOO_LONG),
        lambda: Strategy(pause=TOO_LONG),
        lambda: Strategy(bake=TOO_LONG),
        lambda: Strategy(steps=(Pace(Percent(5), TOO_LONG),)),
        lambda: Limits(interval=TOO_LONG),
        lambda: Limits(initial_delay=TOO_LONG),
        lambda: Check("a", window=TOO_LONG),
    ],
)
def test_a_time_without_bound_is_refused_with_the_limit(make: Any) -> None:
    with pytest.raises(errors.Rejected, match="longer than 366 d"):
        make()


def test_a_command_with_such_a_time_is_refused_at_every_door() -> None:
    commands = codec.Codec(ROLLOUT).commands
    asked = messages.Request("shop", Spec(), Version("v1", "t1"))
    data = msgspec.to_builtins(asked)
    data["spec"]["deadline"] = "P999999999D"

    with pytest.raises(errors.Rejected, match="deadline longer than 366 d: 999999999 d"):
        commands.parse("Request", data)


def test_a_row_with_such_a_time_is_that_rows_fault_alone() -> None:
    states = codec.Codec(ROLLOUT).states
    row = states.encode(live(SPEC).state())
    assert '"PT600S"' in row.data

    with pytest.raises(errors.Corrupt, match="deadline longer than 366 d"):
        states.decode(msgspec.structs.replace(row, data=row.data.replace("PT600S", "P999999999D")))


def test_a_status_with_such_a_time_is_not_adopted() -> None:
    memory = status_codec.dump(live(SPEC).state())
    memory["data"]["rollout"]["spec"]["deadline"] = "P999999999D"

    with pytest.raises(errors.Rejected, match=r"cannot adopt status: .*deadline longer than 366 d"):
        status_codec.load(memory)
