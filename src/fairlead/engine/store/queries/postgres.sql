-- load_streams: the streams of a batch as they stand
SELECT id, name, version, state_type, state_version, state, ended_at IS NOT NULL,
    CASE WHEN machine = ANY (%(ordered)s)
        THEN (SELECT count(*) FROM outbox WHERE outbox.stream = streams.id) ELSE 0 END
FROM streams WHERE name = ANY (%(names)s);

-- lock_streams: locks in one order, so that two batches never wait for each other
SELECT FROM streams WHERE name = ANY (%(names)s) ORDER BY id FOR NO KEY UPDATE;

-- lock_streams_now: streams found to be needed while others are locked; never waits
SELECT FROM streams WHERE name = ANY (%(names)s) ORDER BY id FOR NO KEY UPDATE NOWAIT;

-- load_commands: which of these command ids were taken before
SELECT id, digest, first, last FROM commands WHERE id = ANY (%(ids)s);

-- held_effects: which of these effects this worker still holds
SELECT o.stream, o.seq, o.n, o.owner
FROM json_to_recordset(%(keys)s::json) AS k (stream bigint, seq bigint, n bigint, fence bigint)
JOIN outbox AS o USING (stream, seq, n) WHERE o.owner = k.fence FOR UPDATE OF o;

-- held_timers: which of these settings of timers still stand
SELECT t.stream, t.name, t.seq
FROM json_to_recordset(%(keys)s::json) AS k (stream bigint, name text, seq bigint)
JOIN timers AS t USING (stream, name, seq) FOR UPDATE OF t;

-- stream_block: numbers for new streams, a thousand at a time
SELECT nextval('stream_blocks');

-- insert_streams: first rows of new streams
INSERT INTO streams (id, name, machine, version, state_type, state_version, state, ended_at,
    created_at, updated_at)
SELECT id, name, machine, version, state_type, state_version, state, ended_at, %s, %s
FROM json_to_recordset(%s::json) AS r (id bigint, name text, machine text, version bigint,
    state_type text, state_version bigint, state text, ended_at bigint);

-- update_states: next states, each on top of the version it was decided from
WITH done AS (
    UPDATE streams SET version = r.version, state_type = r.state_type,
        state_version = r.state_version, state = r.state, ended_at = r.ended_at, updated_at = %s
    FROM json_to_recordset(%s::json) AS r (id bigint, seen bigint, version bigint,
        state_type text, state_version bigint, state text, ended_at bigint)
    WHERE streams.id = r.id AND streams.version = r.seen RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM done;

-- insert_events: what happened
INSERT INTO events (stream, seq, type, version, data, cause, at)
SELECT stream, seq, type, version, data, cause, %s
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, type text, version bigint,
    data text, cause text);

-- insert_commands: ids taken, with their answers
INSERT INTO commands (id, stream, digest, first, last, at)
SELECT id, stream, digest, first, last, %s
FROM json_to_recordset(%s::json) AS r (id text, stream bigint, digest text, first bigint,
    last bigint);

-- insert_effects: what is asked of the world
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at)
SELECT stream, seq, n, type, version, data, in_order, owner, %s
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, type text,
    version bigint, data text, in_order boolean, owner bigint);

-- settle_effects: effects that are done, if we still hold them
WITH done AS (
    DELETE FROM outbox AS o
    USING json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, fence bigint)
    WHERE o.stream = r.stream AND o.seq = r.seq AND o.n = r.n AND o.owner = r.fence RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM done;

-- postpone_effects: effects that failed, if we still hold them
UPDATE outbox AS o SET attempts = o.attempts + r.attempts, owner = NULL, due_at = r.due_at,
    dead_at = r.dead_at, error = r.error
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, fence bigint,
    due_at bigint, dead_at bigint, error text, attempts bigint)
WHERE o.stream = r.stream AND o.seq = r.seq AND o.n = r.n AND o.owner = r.fence;

-- set_timers: timers, each replacing one of its name
INSERT INTO timers (stream, name, seq, due_at, type, version, data)
SELECT stream, name, seq, due_at, type, version, data
FROM json_to_recordset(%s::json) AS r (stream bigint, name text, seq bigint, due_at bigint,
    type text, version bigint, data text)
ON CONFLICT (stream, name) DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at,
    type = excluded.type, version = excluded.version, data = excluded.data, owner = NULL,
    attempts = 0;

-- fire_timers: timers that have been delivered, if they are still the same setting
WITH done AS (
    DELETE FROM timers AS t
    USING json_to_recordset(%s::json) AS r (stream bigint, name text, seq bigint)
    WHERE t.stream = r.stream AND t.name = r.name AND t.seq = r.seq RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM done;

-- cancel_timers: timers no longer wanted
DELETE FROM timers AS t
USING json_to_recordset(%s::json) AS r (stream bigint, name text)
WHERE t.stream = r.stream AND t.name = r.name;

-- end_timers: timers of streams that ended
DELETE FROM timers WHERE stream = ANY (%s::bigint[]);

-- claim_effects: due effects nobody holds; in an ordered lane only the first
UPDATE outbox SET owner = %(fence)s WHERE (stream, seq, n) IN (
    SELECT stream, seq, n FROM outbox AS o
    WHERE owner IS NULL AND dead_at IS NULL AND due_at <= %(now)s AND (NOT in_order OR NOT EXISTS (
        SELECT 1 FROM outbox AS e WHERE e.stream = o.stream AND (e.seq, e.n) < (o.seq, o.n)))
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING stream, seq, n, type, version, data, attempts,
    (SELECT name FROM streams WHERE streams.id = outbox.stream);

-- claim_timers: due timers nobody holds
UPDATE timers SET owner = %(fence)s WHERE (stream, name) IN (
    SELECT stream, name FROM timers WHERE owner IS NULL AND due_at <= %(now)s
    ORDER BY due_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
RETURNING stream, name, seq, type, version, data, due_at, attempts,
    (SELECT name FROM streams WHERE streams.id = timers.stream);

-- postpone_timer: a timer whose delivery failed comes again
UPDATE timers SET owner = NULL, attempts = attempts + 1, due_at = %(due)s
WHERE stream = %(stream)s AND name = %(name)s AND seq = %(seq)s;

-- next_effect: when the next unheld effect is due
SELECT min(due_at) FROM outbox WHERE owner IS NULL AND dead_at IS NULL;

-- next_timer: when the next unheld timer is due
SELECT min(due_at) FROM timers WHERE owner IS NULL;

-- register_worker: a new lease with a fence of its own
INSERT INTO workers (name, lease_until) VALUES (%(name)s, %(until)s) RETURNING fence;

-- renew_worker: a longer lease, unless it has lapsed
UPDATE workers SET lease_until = %(until)s WHERE fence = %(fence)s AND lease_until > %(now)s RETURNING fence;

-- end_worker: a lease given back, from now on remembered as lapsed
UPDATE workers SET lease_until = least(lease_until, %(now)s) WHERE fence = %(fence)s;

-- lapsed_workers: leases that ran out
SELECT fence FROM workers WHERE lease_until <= %(now)s;

-- free_effects: effects of dead workers, one attempt the poorer
UPDATE outbox SET owner = NULL, attempts = attempts + 1
WHERE owner IN (SELECT fence FROM workers WHERE lease_until <= %(now)s);

-- free_timers: timers of dead workers
UPDATE timers SET owner = NULL
WHERE owner IN (SELECT fence FROM workers WHERE lease_until <= %(now)s);

-- forget_workers: leases that lapsed long ago
DELETE FROM workers WHERE lease_until <= %(before)s;

-- release_effects: effects a worker gives back unharmed
UPDATE outbox SET owner = NULL WHERE owner = %(fence)s;

-- release_timers: timers a worker gives back
UPDATE timers SET owner = NULL WHERE owner = %(fence)s;

-- live_workers: who is at work
SELECT fence, name, lease_until FROM workers WHERE lease_until > %(now)s ORDER BY fence;

-- get_stream: one stream
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at
FROM streams WHERE name = %(name)s;

-- list_streams: streams, newest first
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at
FROM streams
WHERE (%(machine)s::text IS NULL OR machine = %(machine)s) AND (%(before)s::bigint IS NULL OR id < %(before)s)
    AND (%(ended)s::boolean IS NULL OR (ended_at IS NOT NULL) = %(ended)s)
ORDER BY id DESC LIMIT %(limit)s;

-- stream_events: one stream's events in order
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, e.tx::text::bigint
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE s.name = %(name)s AND e.seq > %(after)s ORDER BY e.seq LIMIT %(limit)s;

-- feed: all events in the order of their commits
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, e.tx::text::bigint
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE (e.tx, e.position) > (%(tx)s::text::xid8, %(position)s)
    AND e.tx < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.tx, e.position LIMIT %(limit)s;

-- feed_end: where the feed stands now
SELECT tx::text::bigint, position FROM events
WHERE tx < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY tx DESC, position DESC LIMIT 1;

-- restored_events: events from a cluster whose transaction numbers were higher than ours
SELECT 1 FROM events WHERE tx >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT 1;

-- renumber_events: after a restore, all of them count as long committed, in their old order
UPDATE events SET tx = '3' WHERE tx > '3';

-- restart_projections: their bookmarks named the old numbers
UPDATE projections SET tx = 0, position = 0;

-- clear_all_projected: and so did their rows
DELETE FROM projected;

-- notify: tell other processes that there is work
SELECT pg_notify(%(channel)s, '');

-- limit_silence: a client that stops between two statements must not keep its row locks
-- A suspended machine or a cut cable would otherwise block every batch that needs the same
-- stream, until somebody notices; between load and write lie milliseconds.
SELECT set_config('idle_in_transaction_session_timeout', '5s', false);

-- store_clock: what time the database has
SELECT now();

-- list_effects: effects waiting, held or dead
SELECT s.name, o.stream, o.seq, o.n, o.type, o.version, o.data, o.attempts, o.due_at, o.owner,
    o.dead_at, o.error
FROM outbox AS o JOIN streams AS s ON s.id = o.stream
WHERE (%(dead)s::boolean IS NULL OR (o.dead_at IS NOT NULL) = %(dead)s) AND (%(name)s::text IS NULL OR s.name = %(name)s)
    AND (o.stream, o.seq, o.n) > (%(stream)s, %(seq)s, %(n)s)
ORDER BY o.stream, o.seq, o.n LIMIT %(limit)s;

-- revive_effect: a dead effect starts over
UPDATE outbox SET dead_at = NULL, owner = NULL, attempts = 0, due_at = %(now)s
WHERE stream = %(stream)s AND seq = %(seq)s AND n = %(n)s AND dead_at IS NOT NULL RETURNING stream;

-- discard_effect: a dead effect is given up
DELETE FROM outbox WHERE stream = %(stream)s AND seq = %(seq)s AND n = %(n)s AND dead_at IS NOT NULL
RETURNING stream;

-- count_rows: how much of everything there is
SELECT (SELECT count(*) FROM streams WHERE ended_at IS NULL), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL), (SELECT count(*) FROM timers);

-- ended_streams: streams that ended before a time and still have events
SELECT id, name FROM streams WHERE ended_at < %(before)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- archived_events: the events of one stream, for export
SELECT seq, type, version, data, cause, at FROM events WHERE stream = %(stream)s ORDER BY seq;

-- delete_events: events that are safely in a file
DELETE FROM events WHERE stream = %(stream)s;

-- delete_commands: command ids of an archived stream
DELETE FROM commands WHERE stream = %(stream)s;

-- delete_stream: the stream itself, if it has not moved since it was exported
DELETE FROM streams WHERE id = %(stream)s AND version = %(version)s AND ended_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.stream = %(stream)s)
    AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.stream = %(stream)s)
RETURNING id;

-- get_projection: how far a projection has read
SELECT version, tx, position FROM projections WHERE name = %(name)s;

-- start_projection: a projection begins, or begins again
INSERT INTO projections (name, version, tx, position) VALUES (%(name)s, %(version)s, 0, 0)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = 0;

-- advance_projection: it has read further, unless another did meanwhile
UPDATE projections SET tx = %(tx)s, position = %(position)s
WHERE name = %(name)s AND version = %(version)s AND tx = %(seen_tx)s AND position = %(seen_position)s;

-- clear_projected: a projection's rows before it is built again
DELETE FROM projected WHERE projection = %(name)s;

-- get_projected: some rows of a projection
SELECT key, data FROM projected
WHERE projection = %(name)s AND key = ANY (%(keys)s);

-- list_projected: a projection's rows in order of their keys
SELECT key, data FROM projected
WHERE projection = %(name)s AND key > %(after)s ORDER BY key LIMIT %(limit)s;

-- put_projected: rows as they are now
INSERT INTO projected (projection, key, data)
SELECT %(name)s, value ->> 0, value ->> 1 FROM json_array_elements(%(rows)s::json)
ON CONFLICT (projection, key) DO UPDATE SET data = excluded.data;

-- drop_projected: rows that are no more
DELETE FROM projected
WHERE projection = %(name)s AND key = ANY (%(keys)s);

-- insert_token: a new token, its secret as a digest only
INSERT INTO tokens (id, name, role, digest, created_at, expires_at)
VALUES (%(id)s, %(name)s, %(role)s, %(digest)s, %(now)s, %(expires)s);

-- get_token: one token by its public part
SELECT id, name, role, digest, created_at, expires_at, revoked_at FROM tokens WHERE id = %(id)s;

-- list_tokens: all tokens, oldest first
SELECT id, name, role, digest, created_at, expires_at, revoked_at FROM tokens
ORDER BY created_at, id;

-- revoke_token: from now on refused
UPDATE tokens SET revoked_at = %(now)s WHERE id = %(id)s AND revoked_at IS NULL RETURNING id;

-- get_fact: a single value about this store
SELECT value FROM facts WHERE name = %(name)s;

-- put_fact: a value that is set once
INSERT INTO facts (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO NOTHING;

-- applied_migrations: what the schema has been through
SELECT name FROM migrations ORDER BY name;
