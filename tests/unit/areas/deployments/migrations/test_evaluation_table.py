"""Every statement of the table of locks, one at a time: class, lock, rewrite and scan."""

import pytest

from fairlead.areas.deployments.domain.classes import Impact
from tests.unit.areas.deployments.migrations.conftest import ROLE, Evaluate

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")

AE = "AccessExclusiveLock"
SRE = "ShareRowExclusiveLock"
S = "ShareLock"
SUE = "ShareUpdateExclusiveLock"
RE = "RowExclusiveLock"
CASES: dict[str, tuple[str, dict[str, str], str]] = {
    "alter table t add column z int": ("BEFORE", {"t": AE}, ""),
    "alter table t add column z int default 5": ("BEFORE", {"t": AE}, ""),
    "alter table t add column z int not null default 5": ("BEFORE", {"t": AE}, ""),
    "alter table t add column z timestamptz default now()": ("BEFORE", {"t": AE}, ""),
    "alter table t add column z float default random()": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t add column z uuid default gen_random_uuid()": (
        "DOWNTIME",
        {"t": AE},
        "REWRITE SCAN",
    ),
    "alter table t add column z int generated always as (a+1) stored": (
        "DOWNTIME",
        {"t": AE},
        "REWRITE SCAN",
    ),
    "alter table t add column z serial": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t add column z int generated always as identity": (
        "DOWNTIME",
        {"t": AE},
        "REWRITE SCAN",
    ),
    "alter table t add column z dom": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t add column z int references p(id)": ("BEFORE", {"p": SRE, "t": AE}, ""),
    "alter table t add column z int unique": ("DOWNTIME", {"t": AE}, "SCAN"),
    "alter table t drop column c": ("DOWNTIME", {"t": AE}, ""),
    "alter table t rename column c to c2": ("DOWNTIME", {"t": AE}, ""),
    "alter table t rename to t9": ("DOWNTIME", {"t": AE}, ""),
    "alter table t alter column c set default 'q'": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column d drop default": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column d drop not null": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column ck set not null": ("DOWNTIME", {"t": AE}, "SCAN"),
    "alter table t alter column a set not null": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column b type varchar(20)": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column b type varchar(5)": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t alter column b type text": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column a type bigint": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t alter column n type numeric(8,2)": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column n type numeric(8,3)": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t alter column ts type timestamptz": ("BEFORE", {"t": AE}, ""),
    "alter table t alter column c set statistics 500": ("PARALLEL", {"t": SUE}, ""),
    "alter table t set (fillfactor=80)": ("PARALLEL", {"t": SUE}, ""),
    "alter table t set (autovacuum_enabled=false)": ("PARALLEL", {"t": SUE}, ""),
    "alter table t add constraint x check(ck>0)": ("DOWNTIME", {"t": AE}, "SCAN"),
    "alter table t add constraint x check(ck>0) not valid": ("BEFORE", {"t": AE}, ""),
    "alter table t validate constraint ck_nv": ("PARALLEL", {"t": SUE}, "SCAN"),
    "alter table t drop constraint ck_nv": ("BEFORE", {"t": AE}, ""),
    "alter table t add constraint fk foreign key(pid) references p(id)": (
        "DOWNTIME",
        {"p": SRE, "t": SRE},
        "SCAN",
    ),
    "alter table t add constraint fk foreign key(pid) references p(id) not valid": (
        "BEFORE",
        {"p": SRE, "t": SRE},
        "",
    ),
    "alter table t add constraint u unique(a)": ("DOWNTIME", {"t": AE}, "SCAN"),
    "alter table t add constraint u unique using index t_uq": ("BEFORE", {"t": AE}, ""),
    "alter table t add exclude using btree (a with =)": ("DOWNTIME", {"t": AE}, "SCAN"),
    "create index i on t(c)": ("DOWNTIME", {"t": S}, "SCAN"),
    "drop index t_a": ("BEFORE", {"t": AE}, ""),
    "alter index t_a rename to t_b": ("PARALLEL", {}, ""),
    "reindex table t": ("DOWNTIME", {"t": S}, "SCAN"),
    "create trigger tg2 before insert on t for each row execute function f()": (
        "BEFORE",
        {"t": SRE},
        "",
    ),
    "drop trigger tg on t": ("DOWNTIME", {"t": AE}, ""),
    "alter table t disable trigger tg": ("BEFORE", {"t": SRE}, ""),
    "alter table t enable row level security": ("DOWNTIME", {"t": AE}, ""),
    "create policy pol on t using(true)": ("DOWNTIME", {"t": AE}, ""),
    f"alter table t owner to {ROLE}": ("BEFORE", {"t": AE}, ""),
    f"grant select on t to {ROLE}": ("PARALLEL", {}, ""),
    "comment on table t is 'x'": ("PARALLEL", {"t": SUE}, ""),
    "create statistics st on a,d from t": ("PARALLEL", {"t": SUE}, ""),
    "truncate t": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "drop table t cascade": ("DOWNTIME", {"t": AE}, ""),
    "alter table t set unlogged": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "alter table t replica identity full": ("BEFORE", {"t": AE}, ""),
    "alter table pt attach partition pt2 for values from (10) to (20)": (
        "BEFORE",
        {"pt": SUE, "pt2": AE},
        "SCAN",
    ),
    "alter table pt detach partition pt1": ("DOWNTIME", {"pt": AE, "pt1": AE}, ""),
    "create table q(id int)": ("BEFORE", {}, ""),
    "create table q(id int references t(id))": ("BEFORE", {"t": SRE}, ""),
    "alter type en add value 'c'": ("BEFORE", {}, ""),
    "alter type en rename value 'a' to 'z'": ("DOWNTIME", {}, ""),
    "create or replace view v as select id,a from t": ("BEFORE", {}, ""),
    "create materialized view mv as select id from t": ("BEFORE", {}, ""),
    "lock table t in share mode": ("DOWNTIME", {"t": S}, ""),
    "update t set c='k'": ("DOWNTIME", {"t": RE}, "SCAN"),
    "delete from t": ("DOWNTIME", {"t": RE}, "SCAN"),
    "analyze t": ("PARALLEL", {"t": SUE}, ""),
    "cluster t using t_a": ("DOWNTIME", {"t": AE}, "REWRITE SCAN"),
    "create rule ru as on insert to t do nothing": ("DOWNTIME", {"t": AE}, ""),
}


@pytest.mark.parametrize("sql", CASES)
def test_a_statement_is_classed_by_what_postgresql_did(evaluate: Evaluate, sql: str) -> None:
    impact, locks, marks = CASES[sql]

    found = evaluate(sql)

    (judged,) = found.statements
    assert found.impact is judged.impact is Impact(impact), judged
    assert {each.relation: each.mode for each in judged.locks} == locks
    assert (judged.rewrite, judged.scan) == ("REWRITE" in marks, "SCAN" in marks)
    assert judged.reasons or judged.impact is Impact.PARALLEL


@pytest.mark.parametrize(
    ("sql", "locks", "scan"),
    [
        ("create index concurrently i on t (c)", {"t": SUE}, True),
        ("reindex index concurrently t_a", {"t": SUE}, True),
        ("drop index concurrently t_a", {"t": SUE}, False),
        ("vacuum t", {}, False),
    ],
)
def test_what_runs_outside_of_transactions_goes_beside_the_release(
    evaluate: Evaluate, sql: str, locks: dict[str, str], *, scan: bool
) -> None:
    (judged,) = evaluate(sql).statements

    assert judged.impact is Impact.PARALLEL, judged
    assert {each.relation: each.mode for each in judged.locks} == locks
    assert judged.scan is scan
