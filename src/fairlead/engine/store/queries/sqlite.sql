-- load_streams: the streams of a batch as they stand
SELECT id, name, version, state_type, state_version, state, ended_at IS NOT NULL,
    CASE WHEN machine IN (SELECT value FROM json_each(:ordered))
        THEN (SELECT count(*) FROM outbox WHERE outbox.stream = streams.id) ELSE 0 END
FROM streams WHERE name IN (SELECT value FROM json_each(:names));

-- load_commands: which of these command ids were taken before
SELECT id, digest, first, last FROM commands WHERE id IN (SELECT value FROM json_each(:ids));

-- held_effects: which of these effects this worker still holds
SELECT o.stream, o.seq, o.n, o.owner FROM json_each(:keys) AS k JOIN outbox AS o
    ON o.stream = k.value ->> 0 AND o.seq = k.value ->> 1 AND o.n = k.value ->> 2
WHERE o.owner = k.value ->> 3;

-- held_timers: which of these settings of timers still stand
SELECT t.stream, t.name, t.seq FROM json_each(:keys) AS k JOIN timers AS t
    ON t.stream = k.value ->> 0 AND t.name = k.value ->> 1 AND t.seq = k.value ->> 2;

-- last_stream: the highest stream number given so far
SELECT seq FROM sqlite_sequence WHERE name = 'streams';

-- insert_streams: first rows of new streams
INSERT INTO streams (id, name, machine, version, state_type, state_version, state, ended_at,
    created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- update_states: next states, each on top of the version it was decided from
UPDATE streams SET version = ?, state_type = ?, state_version = ?, state = ?, ended_at = ?,
    updated_at = ?
WHERE id = ? AND version = ?;

-- insert_events: what happened
INSERT INTO events (stream, seq, type, version, data, cause, at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- insert_commands: ids taken, with their answers
INSERT INTO commands (id, stream, digest, first, last, at) VALUES (?, ?, ?, ?, ?, ?);

-- insert_effects: what is asked of the world
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- settle_effects: effects that are done, if we still hold them
DELETE FROM outbox WHERE stream = ? AND seq = ? AND n = ? AND owner = ?;

-- postpone_effects: effects that failed, if we still hold them
UPDATE outbox SET attempts = attempts + ?, owner = NULL, due_at = ?, dead_at = ?, error = ?
WHERE stream = ? AND seq = ? AND n = ? AND owner = ?;

-- set_timers: timers, each replacing one of its name
INSERT INTO timers (stream, name, seq, due_at, type, version, data) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (stream, name) DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at,
    type = excluded.type, version = excluded.version, data = excluded.data, owner = NULL,
    attempts = 0;

-- fire_timers: timers that have been delivered, if they are still the same setting
DELETE FROM timers WHERE stream = ? AND name = ? AND seq = ?;

-- cancel_timers: timers no longer wanted
DELETE FROM timers WHERE stream = ? AND name = ?;

-- end_timers: timers of streams that ended
DELETE FROM timers WHERE stream = ?;

-- claim_effects: due effects nobody holds; in an ordered lane only the first
UPDATE outbox SET owner = :fence WHERE (stream, seq, n) IN (
    SELECT stream, seq, n FROM outbox AS o
    WHERE owner IS NULL AND dead_at IS NULL AND due_at <= :now AND (NOT in_order OR NOT EXISTS (
        SELECT 1 FROM outbox AS e WHERE e.stream = o.stream AND (e.seq, e.n) < (o.seq, o.n)))
    ORDER BY due_at LIMIT :limit)
RETURNING stream, seq, n, type, version, data, attempts,
    (SELECT name FROM streams WHERE streams.id = outbox.stream);

-- claim_timers: due timers nobody holds
UPDATE timers SET owner = :fence WHERE (stream, name) IN (
    SELECT stream, name FROM timers WHERE owner IS NULL AND due_at <= :now
    ORDER BY due_at LIMIT :limit)
RETURNING stream, name, seq, type, version, data, due_at, attempts,
    (SELECT name FROM streams WHERE streams.id = timers.stream);

-- postpone_timer: a timer whose delivery failed comes again
UPDATE timers SET owner = NULL, attempts = attempts + 1, due_at = :due
WHERE stream = :stream AND name = :name AND seq = :seq;

-- next_effect: when the next unheld effect is due
SELECT min(due_at) FROM outbox WHERE owner IS NULL AND dead_at IS NULL;

-- next_timer: when the next unheld timer is due
SELECT min(due_at) FROM timers WHERE owner IS NULL;

-- register_worker: a new lease with a fence of its own
INSERT INTO workers (name, lease_until) VALUES (:name, :until) RETURNING fence;

-- renew_worker: a longer lease, unless it has lapsed
UPDATE workers SET lease_until = :until WHERE fence = :fence AND lease_until > :now RETURNING fence;

-- end_worker: a lease given back, from now on remembered as lapsed
UPDATE workers SET lease_until = min(lease_until, :now) WHERE fence = :fence;

-- lapsed_workers: leases that ran out
SELECT fence FROM workers WHERE lease_until <= :now;

-- free_effects: effects of dead workers, one attempt the poorer
UPDATE outbox SET owner = NULL, attempts = attempts + 1
WHERE owner IN (SELECT fence FROM workers WHERE lease_until <= :now);

-- free_timers: timers of dead workers
UPDATE timers SET owner = NULL
WHERE owner IN (SELECT fence FROM workers WHERE lease_until <= :now);

-- forget_workers: leases that lapsed long ago
DELETE FROM workers WHERE lease_until <= :before;

-- release_effects: effects a worker gives back unharmed
UPDATE outbox SET owner = NULL WHERE owner = :fence;

-- release_timers: timers a worker gives back
UPDATE timers SET owner = NULL WHERE owner = :fence;

-- live_workers: who is at work
SELECT fence, name, lease_until FROM workers WHERE lease_until > :now ORDER BY fence;

-- get_stream: one stream
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at
FROM streams WHERE name = :name;

-- list_streams: streams, newest first
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at
FROM streams
WHERE (:machine IS NULL OR machine = :machine) AND (:before IS NULL OR id < :before)
    AND (:ended IS NULL OR (ended_at IS NOT NULL) = :ended)
ORDER BY id DESC LIMIT :limit;

-- stream_events: one stream's events in order
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, 0
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE s.name = :name AND e.seq > :after ORDER BY e.seq LIMIT :limit;

-- feed: all events in the order of their commits
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, 0
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE e.position > :position AND :tx IS NOT NULL ORDER BY e.position LIMIT :limit;

-- feed_end: where the feed stands now
SELECT 0, coalesce(max(position), 0) FROM events;

-- list_effects: effects waiting, held or dead
SELECT s.name, o.stream, o.seq, o.n, o.type, o.version, o.data, o.attempts, o.due_at, o.owner,
    o.dead_at, o.error
FROM outbox AS o JOIN streams AS s ON s.id = o.stream
WHERE (:dead IS NULL OR (o.dead_at IS NOT NULL) = :dead) AND (:name IS NULL OR s.name = :name)
    AND (o.stream, o.seq, o.n) > (:stream, :seq, :n)
ORDER BY o.stream, o.seq, o.n LIMIT :limit;

-- revive_effect: a dead effect starts over
UPDATE outbox SET dead_at = NULL, owner = NULL, attempts = 0, due_at = :now
WHERE stream = :stream AND seq = :seq AND n = :n AND dead_at IS NOT NULL RETURNING stream;

-- discard_effect: a dead effect is given up
DELETE FROM outbox WHERE stream = :stream AND seq = :seq AND n = :n AND dead_at IS NOT NULL
RETURNING stream;

-- count_rows: how much of everything there is
SELECT (SELECT count(*) FROM streams WHERE ended_at IS NULL), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL), (SELECT count(*) FROM timers);

-- ended_streams: streams that ended before a time and still have events
SELECT id, name FROM streams WHERE ended_at < :before AND id > :after ORDER BY id LIMIT :limit;

-- archived_events: the events of one stream, for export
SELECT seq, type, version, data, cause, at FROM events WHERE stream = :stream ORDER BY seq;

-- delete_events: events that are safely in a file
DELETE FROM events WHERE stream = :stream;

-- delete_commands: command ids of an archived stream
DELETE FROM commands WHERE stream = :stream;

-- delete_stream: the stream itself, if it has not moved since it was exported
DELETE FROM streams WHERE id = :stream AND version = :version AND ended_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.stream = :stream)
    AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.stream = :stream)
RETURNING id;

-- get_projection: how far a projection has read
SELECT version, tx, position FROM projections WHERE name = :name;

-- start_projection: a projection begins, or begins again
INSERT INTO projections (name, version, tx, position) VALUES (:name, :version, 0, 0)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = 0;

-- advance_projection: it has read further, unless another did meanwhile
UPDATE projections SET tx = :tx, position = :position
WHERE name = :name AND version = :version AND tx = :seen_tx AND position = :seen_position;

-- clear_projected: a projection's rows before it is built again
DELETE FROM projected WHERE projection = :name;

-- get_projected: some rows of a projection
SELECT key, data FROM projected
WHERE projection = :name AND key IN (SELECT value FROM json_each(:keys));

-- list_projected: a projection's rows in order of their keys
SELECT key, data FROM projected
WHERE projection = :name AND key > :after ORDER BY key LIMIT :limit;

-- put_projected: rows as they are now
INSERT INTO projected (projection, key, data)
SELECT :name, value ->> 0, value ->> 1 FROM json_each(:rows) WHERE true
ON CONFLICT (projection, key) DO UPDATE SET data = excluded.data;

-- drop_projected: rows that are no more
DELETE FROM projected
WHERE projection = :name AND key IN (SELECT value FROM json_each(:keys));

-- insert_token: a new token, its secret as a digest only
INSERT INTO tokens (id, name, role, digest, created_at, expires_at)
VALUES (:id, :name, :role, :digest, :now, :expires);

-- get_token: one token by its public part
SELECT id, name, role, digest, created_at, expires_at, revoked_at FROM tokens WHERE id = :id;

-- list_tokens: all tokens, oldest first
SELECT id, name, role, digest, created_at, expires_at, revoked_at FROM tokens
ORDER BY created_at, id;

-- revoke_token: from now on refused
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING id;

-- get_fact: a single value about this store
SELECT value FROM facts WHERE name = :name;

-- put_fact: a value that is set once
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- applied_migrations: what the schema has been through
SELECT name FROM migrations ORDER BY name;
