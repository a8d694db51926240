-- Attributes: what a machine says of its streams, so that they are found by it.

-- A value is a text that sorts as what it stands for; engine/attributes.py has the forms. They
-- sort by their letters' numbers, as on SQLite, whatever language the database speaks.
CREATE TABLE attributes (
    stream bigint NOT NULL,
    machine text NOT NULL,
    name text NOT NULL,
    value text COLLATE "C" NOT NULL,
    PRIMARY KEY (stream, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX attributes_by_value ON attributes (machine, name, value, stream);
