"""Whole migrations of a shop, as people write them: each statement with class, rewrite and scan."""

import psycopg
import pytest

from fairlead.areas.deployments.domain.classes import Impact, worst
from tests.unit.areas.deployments.migrations.conftest import Evaluate

# They count copies on a server that workers share: one after the other.
pytestmark = pytest.mark.xdist_group("evaluation")

SCHEMA = """
CREATE TABLE customers (id bigint PRIMARY KEY, email text NOT NULL, name text, born date);
CREATE TABLE products (id bigint PRIMARY KEY, sku varchar(20) NOT NULL, price numeric(8,2));
CREATE TABLE orders (
  id bigint PRIMARY KEY, customer_id bigint NOT NULL, state text NOT NULL DEFAULT 'new',
  total numeric(8,2), placed timestamp, note varchar(40), number int, item bigint
);
CREATE TABLE items (order_id bigint, product_id bigint, quantity int,
  PRIMARY KEY (order_id, product_id));
CREATE INDEX orders_customer ON orders (customer_id);
CREATE VIEW open_orders AS SELECT id, customer_id FROM orders WHERE state = 'new';
INSERT INTO customers SELECT i, 'a' || i, 'b', now() FROM generate_series(1, 2000) i;
INSERT INTO products SELECT i, 'c' || i, 1 FROM generate_series(1, 2000) i;
INSERT INTO orders SELECT i, i, 'new', 1, now(), '', i, i FROM generate_series(1, 2000) i;
INSERT INTO items SELECT i, i, 1 FROM generate_series(1, 2000) i;
ANALYZE;
"""

# A pair for each statement: what it is judged to be, and its words; COMMIT ends a transaction.
MIGRATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "a table of addresses": (
        (
            "BEFORE",
            "CREATE TABLE addresses (id int PRIMARY KEY, customer_id bigint REFERENCES customers)",
        ),
        ("PARALLEL", "CREATE INDEX addresses_customer ON addresses (customer_id)"),
        ("PARALLEL", "COMMENT ON TABLE addresses IS 'where parcels go'"),
    ),
    "a column with its default, then its check": (
        ("BEFORE", "ALTER TABLE orders ADD COLUMN currency text NOT NULL DEFAULT 'EUR'"),
        ("BEFORE", "ALTER TABLE orders ADD CONSTRAINT known CHECK (currency <> 'DM') NOT VALID"),
    ),
    "the same, with the check at once": (
        ("BEFORE", "ALTER TABLE orders ADD COLUMN currency text NOT NULL DEFAULT 'EUR'"),
        ("DOWNTIME SCAN", "ALTER TABLE orders ADD CONSTRAINT known CHECK (currency <> 'DM')"),
    ),
    "a column, filled in one go": (
        ("BEFORE", "ALTER TABLE orders ADD COLUMN gross numeric(8,2)"),
        ("DOWNTIME SCAN", "UPDATE orders SET gross = total * 1.19"),
        ("DOWNTIME SCAN", "ALTER TABLE orders ALTER COLUMN gross SET NOT NULL"),
    ),
    "not null in the way of the book": (
        (
            "BEFORE",
            "ALTER TABLE orders ADD CONSTRAINT total_there CHECK (total IS NOT NULL) NOT VALID",
        ),
        ("", "COMMIT"),
        ("PARALLEL SCAN", "ALTER TABLE orders VALIDATE CONSTRAINT total_there"),
        ("", "COMMIT"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN total SET NOT NULL"),
        ("BEFORE", "ALTER TABLE orders DROP CONSTRAINT total_there"),
    ),
    "a foreign key in the way of the book": (
        (
            "BEFORE",
            "ALTER TABLE orders ADD CONSTRAINT c FOREIGN KEY (item) REFERENCES customers NOT VALID",
        ),
        ("", "COMMIT"),
        ("PARALLEL SCAN", "ALTER TABLE orders VALIDATE CONSTRAINT c"),
    ),
    "a foreign key validated in the same transaction": (
        (
            "BEFORE",
            "ALTER TABLE orders ADD CONSTRAINT c FOREIGN KEY (item) REFERENCES customers NOT VALID",
        ),
        ("DOWNTIME SCAN", "ALTER TABLE orders VALIDATE CONSTRAINT c"),
    ),
    "two indexes built beside": (
        ("PARALLEL SCAN", "CREATE INDEX CONCURRENTLY orders_state ON orders (state)"),
        ("PARALLEL SCAN", "CREATE UNIQUE INDEX CONCURRENTLY customers_email ON customers (email)"),
    ),
    "an index replaced": (
        (
            "PARALLEL SCAN",
            "CREATE INDEX CONCURRENTLY orders_customer_state ON orders (customer_id, state)",
        ),
        ("PARALLEL", "DROP INDEX CONCURRENTLY orders_customer"),
    ),
    "an index replaced with readers waiting": (
        ("BEFORE", "DROP INDEX orders_customer"),
        ("DOWNTIME SCAN", "CREATE INDEX orders_customer ON orders (customer_id, state)"),
    ),
    "a split of names": (
        ("BEFORE", "ALTER TABLE customers ADD COLUMN first text, ADD COLUMN last text"),
        ("BEFORE", "UPDATE customers SET first = name WHERE id BETWEEN 1 AND 500"),
        ("BEFORE", "CREATE VIEW people AS SELECT id, first, last FROM customers"),
    ),
    "the old column goes": (
        ("DOWNTIME", "DROP VIEW open_orders"),
        ("DOWNTIME", "ALTER TABLE orders DROP COLUMN note"),
    ),
    "a wider key": (
        ("DOWNTIME REWRITE SCAN", "ALTER TABLE orders ALTER COLUMN number TYPE bigint"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN note TYPE text"),
    ),
    "wider texts": (
        ("BEFORE", "ALTER TABLE products ALTER COLUMN sku TYPE varchar(60)"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN note TYPE text"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN total TYPE numeric(10,2)"),
    ),
    "an enumeration in place of a text": (
        ("BEFORE", "CREATE TYPE order_state AS ENUM ('new', 'paid', 'sent')"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN state DROP DEFAULT"),
        ("DOWNTIME", "DROP VIEW open_orders"),
        (
            "DOWNTIME REWRITE SCAN",
            "ALTER TABLE orders ALTER COLUMN state TYPE order_state USING state::order_state",
        ),
    ),
    "an audit by a trigger": (
        ("BEFORE", "CREATE TABLE audit (at timestamptz DEFAULT now(), who text, what jsonb)"),
        (
            "BEFORE",
            "CREATE FUNCTION noted() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        ),
        (
            "BEFORE",
            "CREATE TRIGGER noted AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION noted()",
        ),
    ),
    "tables told apart": (
        ("DOWNTIME", "ALTER TABLE items RENAME TO order_items"),
        ("DOWNTIME", "ALTER TABLE order_items RENAME COLUMN quantity TO count"),
    ),
    "a row for every tenant's eyes": (
        ("DOWNTIME", "ALTER TABLE customers ENABLE ROW LEVEL SECURITY"),
        ("DOWNTIME", "CREATE POLICY own ON customers USING (email = current_user)"),
    ),
    "an archive by months": (
        (
            "BEFORE",
            "CREATE TABLE archive (id bigint, placed timestamp) PARTITION BY RANGE (placed)",
        ),
        (
            "BEFORE",
            "CREATE TABLE y30 PARTITION OF archive FOR VALUES FROM ('2030-01-01') TO ('2031-1-1')",
        ),
        ("PARALLEL", "CREATE INDEX archive_placed ON archive (placed)"),
        ("PARALLEL", "INSERT INTO archive VALUES (1, '2030-05-05')"),
    ),
    "tidying before a weekend": (
        ("PARALLEL", "SET lock_timeout = '2s'"),
        ("BEFORE", "DELETE FROM items WHERE order_id = 7"),
        ("PARALLEL", "ALTER TABLE items SET (fillfactor = 80)"),
        ("PARALLEL", "ANALYZE items"),
    ),
    "a summary that is kept": (
        (
            "BEFORE",
            "CREATE MATERIALIZED VIEW sums AS SELECT customer_id, max(id) FROM orders GROUP BY 1",
        ),
        ("PARALLEL", "CREATE UNIQUE INDEX sums_customer ON sums (customer_id)"),
        ("PARALLEL", "GRANT SELECT ON sums TO fairlead_test_reader"),
    ),
    "numbers from a sequence": (
        ("BEFORE", "CREATE SEQUENCE order_numbers"),
        ("BEFORE", "ALTER TABLE orders ALTER COLUMN number SET DEFAULT nextval('order_numbers')"),
        ("PARALLEL", "ALTER SEQUENCE order_numbers OWNED BY orders.number"),
    ),
}


@pytest.fixture
def shop(target: str) -> str:
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute(SCHEMA)
    return target


@pytest.mark.parametrize("name", MIGRATIONS)
def test_a_migration_of_several_statements_is_judged_one_by_one_and_by_its_worst(
    evaluate: Evaluate, shop: str, name: str
) -> None:
    expected = [judged for judged, _ in MIGRATIONS[name] if judged]

    found = evaluate(";\n".join(sql for _, sql in MIGRATIONS[name]))

    told = [
        " ".join([each.impact.value, *["REWRITE"] * each.rewrite, *["SCAN"] * each.scan])
        for each in found.statements
    ]
    assert told == expected, found
    assert found.impact is worst(Impact(each.split()[0]) for each in expected)
    # Whoever is kept waiting is told why.
    assert all(each.reasons for each in found.statements if each.impact > Impact.PARALLEL)
