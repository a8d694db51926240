"""Evaluations as steps report them: bounded, and without what nobody should read."""

import pytest

from fairlead.areas.deployments import findings
from fairlead.areas.deployments.domain.classes import Impact
from fairlead.areas.deployments.domain.messages import PerformStep, StatementFound
from fairlead.areas.deployments.migrations.classification import Judged, Lock
from fairlead.areas.deployments.migrations.evaluation import Evaluation
from tests.unit.areas.deployments.domain.samples import SPEC

STEP = PerformStep(SPEC, "PGEval", "PGEvaluate", 1, "token")


def test_a_step_reports_each_statement_and_the_reasons_of_the_worst() -> None:
    locked = Judged(
        "ALTER TABLE  t\nADD c int",
        Impact.BEFORE,
        (Lock("t", "AccessExclusiveLock"),),
        reasons=("adds column t.c",),
    )
    found = Evaluation(Impact.BEFORE, (Judged("SELECT 1", Impact.PARALLEL), locked))

    told = findings.report(STEP, found)

    assert told.impact is Impact.BEFORE
    assert told.reasons == ("ALTER TABLE t ADD c int: adds column t.c: BEFORE",)
    assert told.statements[1] == StatementFound(
        "ALTER TABLE t ADD c int",
        Impact.BEFORE,
        ("AccessExclusiveLock on t",),
        reasons=("adds column t.c",),
    )


def test_what_the_copy_lacks_is_a_reason() -> None:
    found = Evaluation(
        Impact.DOWNTIME, (Judged("SELECT 1", Impact.PARALLEL),), ("cannot be evaluated without x",)
    )

    assert findings.report(STEP, found).reasons == ("cannot be evaluated without x: DOWNTIME",)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER ROLE shop PASSWORD 's3cr''et'; SELECT 'https://ann:s3cr@db'",
        r"ALTER ROLE shop PASSWORD E's\'s3cr'",
        r"ALTER ROLE shop PASSWORD '\' VALID UNTIL 's3cr'",
        "ALTER ROLE shop PASSWORD $$s3cr$$",
        "ALTER ROLE shop password $a$ s3cr' $b$ $a$",
        "ALTER ROLE shop PASSWORD /* 'x' */ 's3cr'",
        "CREATE USER MAPPING FOR shop SERVER far OPTIONS (user 'ann', password 's3cr')",
        "DO $$ BEGIN EXECUTE 'ALTER ROLE shop PASSWORD s3cr'; END $$",
    ],
)
def test_no_password_leaves_a_migration(sql: str) -> None:
    found = Evaluation(Impact.DOWNTIME, (Judged(sql, Impact.DOWNTIME, reasons=("why",)),))

    assert "s3cr" not in str(findings.report(STEP, found))


def test_an_event_holds_so_much_and_no_more() -> None:
    many = Evaluation(Impact.NOP, tuple(Judged("x" * 9000, Impact.NOP) for _ in range(500)))

    told = findings.report(STEP, many).statements

    assert len(told) == 200
    assert max(len(each.sql) for each in told) == 400
