-- Retention: old events of streams that live on leave the store for a file.

-- The first event that is still here; those before it are in an archive.
ALTER TABLE streams ADD COLUMN kept_from bigint NOT NULL DEFAULT 1;

-- The state after the last event that left, for whoever folds the rest again.
CREATE TABLE snapshots (
    stream bigint PRIMARY KEY,
    seq bigint NOT NULL,
    state_type text NOT NULL,
    state_version bigint NOT NULL,
    state text NOT NULL,
    at bigint NOT NULL
);
