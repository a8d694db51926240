-- The first schema: streams with their state, their events, and what they ask of the world.

CREATE TABLE streams (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    machine TEXT NOT NULL,
    version INTEGER NOT NULL,
    state_type TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at INTEGER
) STRICT;
CREATE INDEX streams_by_machine ON streams (machine, id);
CREATE INDEX streams_ended ON streams (ended_at) WHERE ended_at IS NOT NULL;

-- position is the order of commits: one writer at a time makes it gapless in time.
CREATE TABLE events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    data TEXT NOT NULL,
    cause TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX events_by_stream ON events (stream, seq);

CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    stream INTEGER NOT NULL,
    digest TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX commands_by_stream ON commands (stream);

CREATE TABLE outbox (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    n INTEGER NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    data TEXT NOT NULL,
    in_order INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    due_at INTEGER NOT NULL,
    owner INTEGER,
    dead_at INTEGER,
    error TEXT,
    PRIMARY KEY (stream, seq, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_waiting ON outbox (due_at) WHERE owner IS NULL AND dead_at IS NULL;

CREATE TABLE timers (
    stream INTEGER NOT NULL,
    name TEXT NOT NULL,
    seq INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    data TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    owner INTEGER,
    PRIMARY KEY (stream, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX timers_waiting ON timers (due_at) WHERE owner IS NULL;

CREATE TABLE workers (
    fence INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    lease_until INTEGER NOT NULL
) STRICT;

CREATE TABLE projections (
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    tx INTEGER NOT NULL,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE projected (
    projection TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (projection, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE facts (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
