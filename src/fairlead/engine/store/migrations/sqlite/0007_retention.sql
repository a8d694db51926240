-- Retention: old events of streams that live on leave the store for a file.

-- The first event that is still here; those before it are in an archive.
ALTER TABLE streams ADD COLUMN kept_from INTEGER NOT NULL DEFAULT 1;

-- The state after the last event that left, for whoever folds the rest again.
CREATE TABLE snapshots (
    stream INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    state_type TEXT NOT NULL,
    state_version INTEGER NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
