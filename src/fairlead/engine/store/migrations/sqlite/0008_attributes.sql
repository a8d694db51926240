-- Attributes: what a machine says of its streams, so that they are found by it.

-- A value is a text that sorts as what it stands for; engine/attributes.py has the forms.
CREATE TABLE attributes (
    stream INTEGER NOT NULL,
    machine TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (stream, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX attributes_by_value ON attributes (machine, name, value, stream);
