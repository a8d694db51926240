-- load_streams: the streams of a batch as they stand; no states once they are too many bytes
SELECT id, name, version, state_type, state_version,
    CASE WHEN sum(octet_length(state)) OVER (ROWS UNBOUNDED PRECEDING) <= %(bytes)s THEN state END,
    ended_at IS NOT NULL, CASE WHEN machine = ANY (%(ordered)s)
        THEN (SELECT count(*) FROM (SELECT FROM outbox WHERE outbox.stream = streams.id LIMIT 2) AS l)
        ELSE 0 END, queue
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
JOIN outbox AS o USING (stream, seq, n)
-- Not by "=": the planner would look for all that the worker holds, and then for the key.
WHERE o.owner IS NOT DISTINCT FROM k.fence FOR UPDATE OF o;

-- held_timers: which of these settings of timers still stand
SELECT t.stream, t.name, t.seq
FROM json_to_recordset(%(keys)s::json) AS k (stream bigint, name text, seq bigint)
JOIN timers AS t USING (stream, name, seq) FOR UPDATE OF t;

-- stream_block: numbers for new streams, a thousand at a time
SELECT nextval('stream_blocks');

-- insert_streams: first rows of new streams
INSERT INTO streams (id, name, machine, version, state_type, state_version, state, ended_at, queue,
    created_at, updated_at)
SELECT id, name, machine, version, state_type, state_version, state, ended_at, queue, %s, %s
FROM json_to_recordset(%s::json) AS r (id bigint, name text, machine text, version bigint,
    state_type text, state_version bigint, state text, ended_at bigint, queue text);

-- update_states: next states, each on top of the version it was decided from, in one queue
WITH done AS (
    UPDATE streams SET version = r.version, state_type = r.state_type,
        state_version = r.state_version, state = r.state, ended_at = r.ended_at, updated_at = %s
    FROM json_to_recordset(%s::json) AS r (id bigint, seen bigint, version bigint,
        state_type text, state_version bigint, state text, ended_at bigint)
    WHERE streams.id = r.id AND streams.version = r.seen RETURNING streams.queue)
-- Compared afterwards: as a condition, the planner would look for all of the queue first.
SELECT 1 / (count(*) FILTER (WHERE queue = %s) = %s)::int FROM done;

-- insert_events: what happened
INSERT INTO events (stream, seq, type, version, data, cause, at)
SELECT stream, seq, type, version, data, cause, %s
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, type text, version bigint,
    data text, cause text);

-- insert_events_in_turn: the same by a transaction that may be older than the one before it
-- The feed goes by tx. A higher one than our own is safe: nobody reads past us before our end.
INSERT INTO events (stream, seq, type, version, data, cause, at, tx)
SELECT stream, seq, type, version, data, cause, %s, greatest(pg_current_xact_id(), (
    SELECT e.tx FROM events AS e WHERE e.stream = r.stream AND e.seq < r.seq
    ORDER BY e.seq DESC LIMIT 1))
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, type text, version bigint,
    data text, cause text);

-- insert_commands: ids taken, with their answers
INSERT INTO commands (id, stream, digest, first, last, at)
SELECT id, stream, digest, first, last, %s
FROM json_to_recordset(%s::json) AS r (id text, stream bigint, digest text, first bigint,
    last bigint);

-- put_attributes: what streams are found by from now on
INSERT INTO attributes (stream, machine, name, value)
SELECT stream, machine, name, value
FROM json_to_recordset(%s::json) AS r (stream bigint, machine text, name text, value text)
WHERE value IS NOT NULL
ON CONFLICT (stream, name) DO UPDATE SET value = excluded.value;

-- drop_attributes: attributes that streams no longer have
DELETE FROM attributes AS a
USING json_to_recordset(%s::json) AS r (stream bigint, name text, value text)
WHERE a.stream = r.stream AND a.name = r.name AND r.value IS NULL;

-- insert_effects: what is asked of the world, by streams of one queue and machine
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at, epoch, queue, machine)
SELECT stream, seq, n, type, version, data, in_order, owner, %s, %s, %s, %s
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, type text,
    version bigint, data text, in_order boolean, owner bigint);

-- settle_effects: effects that are done, if we still hold them
WITH done AS (
    DELETE FROM outbox AS o
    USING json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, fence bigint)
    WHERE o.stream = r.stream AND o.seq = r.seq AND o.n = r.n
        AND o.owner IS NOT DISTINCT FROM r.fence RETURNING 1)
SELECT 1 / (count(*) = %s)::int FROM done;

-- withdraw_effects: effects no longer wanted; those that nobody holds go with it
UPDATE outbox AS o SET withdrawn = true
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, type text, data text)
WHERE o.stream = r.stream AND o.seq < r.seq AND o.type = r.type
    AND (r.data IS NULL OR o.data = r.data);

-- postpone_effects: effects that failed or found no place, if we still hold them
UPDATE outbox AS o SET attempts = o.attempts + r.attempts, owner = NULL,
    due_at = coalesce(r.due_at, o.due_at), dead_at = r.dead_at, error = coalesce(r.error, o.error)
FROM json_to_recordset(%s::json) AS r (stream bigint, seq bigint, n bigint, fence bigint,
    due_at bigint, dead_at bigint, error text, attempts bigint)
WHERE o.stream = r.stream AND o.seq = r.seq AND o.n = r.n
    AND o.owner IS NOT DISTINCT FROM r.fence;

-- set_timers: timers, each replacing one of its name
INSERT INTO timers (stream, name, seq, due_at, type, version, data)
SELECT stream, name, seq, due_at, type, version, data
FROM json_to_recordset(%s::json) AS r (stream bigint, name text, seq bigint, due_at bigint,
    type text, version bigint, data text)
ON CONFLICT (stream, name) DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at,
    type = excluded.type, version = excluded.version, data = excluded.data, owner = NULL,
    attempts = 0, dead_at = NULL, error = NULL;

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

-- claim_effects: due effects nobody holds and this worker serves, the oldest first
-- To a key of `serves` may come how many of its kind are taken at most, and which streams are not;
-- 256 rows are read to get past those, never a whole backlog. Whether a state can be read is no
-- EXISTS: for a backlog, the planner would make a hash of all streams that there ever were.
UPDATE outbox SET owner = %(fence)s WHERE (stream, seq, n) IN (
    SELECT c.stream, c.seq, c.n
    FROM json_array_elements(%(serves)s::json) AS s (key), LATERAL (
        SELECT * FROM (
            SELECT o.stream, o.seq, o.n, o.due_at FROM outbox AS o
            WHERE o.queue = s.key ->> 0 AND o.machine = s.key ->> 1 AND o.type = s.key ->> 2
                AND o.version = (s.key ->> 3)::bigint AND NOT o.blocked
                AND o.owner IS NULL AND o.dead_at IS NULL AND o.due_at <= %(now)s
                AND (s.key ->> 6 IS NULL OR (
                    SELECT t.state_version <= (s.key -> 6 ->> t.state_type)::bigint
                    FROM streams AS t WHERE t.id = o.stream))
            ORDER BY o.due_at LIMIT CASE WHEN json_array_length(s.key -> 5) > 0 THEN 256
                ELSE least((s.key ->> 4)::bigint, %(limit)s) END
            FOR UPDATE SKIP LOCKED) AS w
        WHERE NOT EXISTS (
            SELECT FROM json_array_elements_text(s.key -> 5) AS busy WHERE busy = w.stream::text)
        ORDER BY w.due_at LIMIT least((s.key ->> 4)::bigint, %(limit)s)) AS c
    ORDER BY c.due_at LIMIT %(limit)s)
RETURNING stream, seq, n, type, version, data, attempts, queue,
    (SELECT name FROM streams WHERE streams.id = outbox.stream), epoch;

-- claim_newest: the same, the newest first, so that newcomers do not wait for all of a backlog
UPDATE outbox SET owner = %(fence)s WHERE (stream, seq, n) IN (
    SELECT c.stream, c.seq, c.n
    FROM json_array_elements(%(serves)s::json) AS s (key), LATERAL (
        SELECT * FROM (
            SELECT o.stream, o.seq, o.n, o.due_at FROM outbox AS o
            WHERE o.queue = s.key ->> 0 AND o.machine = s.key ->> 1 AND o.type = s.key ->> 2
                AND o.version = (s.key ->> 3)::bigint AND NOT o.blocked
                AND o.owner IS NULL AND o.dead_at IS NULL AND o.due_at <= %(now)s
                AND (s.key ->> 6 IS NULL OR (
                    SELECT t.state_version <= (s.key -> 6 ->> t.state_type)::bigint
                    FROM streams AS t WHERE t.id = o.stream))
            ORDER BY o.due_at DESC LIMIT CASE WHEN json_array_length(s.key -> 5) > 0 THEN 256
                ELSE least((s.key ->> 4)::bigint, %(limit)s) END
            FOR UPDATE SKIP LOCKED) AS w
        WHERE NOT EXISTS (
            SELECT FROM json_array_elements_text(s.key -> 5) AS busy WHERE busy = w.stream::text)
        ORDER BY w.due_at DESC LIMIT least((s.key ->> 4)::bigint, %(limit)s)) AS c
    ORDER BY c.due_at DESC LIMIT %(limit)s)
RETURNING stream, seq, n, type, version, data, attempts, queue,
    (SELECT name FROM streams WHERE streams.id = outbox.stream), epoch;

-- claim_timers: due timers nobody holds and this worker can read
UPDATE timers SET owner = %(fence)s WHERE (stream, name) IN (
    SELECT t.stream, t.name FROM timers AS t JOIN streams AS s ON s.id = t.stream
    WHERE t.owner IS NULL AND t.dead_at IS NULL AND t.due_at <= %(now)s AND t.version
        <= ((SELECT %(knows)s::jsonb) ->> (s.machine || ' ' || t.type))::bigint
        AND s.state_version
        <= ((SELECT %(knows)s::jsonb) ->> (s.machine || ' state ' || s.state_type))::bigint
    ORDER BY t.due_at LIMIT %(limit)s FOR UPDATE OF t SKIP LOCKED)
RETURNING stream, name, seq, type, version, data, due_at, attempts,
    (SELECT name FROM streams WHERE streams.id = timers.stream);

-- postpone_timer: a timer whose delivery failed comes again, or lies dead until a person looks
UPDATE timers SET owner = NULL, attempts = attempts + %(attempts)s, due_at = %(due)s,
    dead_at = %(dead)s, error = %(error)s
WHERE stream = %(stream)s AND name = %(name)s AND seq = %(seq)s;

-- next_effect: when the next unheld effect is due that this worker serves
SELECT min((SELECT o.due_at FROM outbox AS o
    WHERE o.queue = s.key ->> 0 AND o.machine = s.key ->> 1 AND o.type = s.key ->> 2
        AND o.version = (s.key ->> 3)::bigint AND NOT o.blocked
        AND o.owner IS NULL AND o.dead_at IS NULL
        AND (s.key ->> 6 IS NULL OR (
            SELECT t.state_version <= (s.key -> 6 ->> t.state_type)::bigint
            FROM streams AS t WHERE t.id = o.stream))
    ORDER BY o.due_at LIMIT 1))
FROM json_array_elements(%(serves)s::json) AS s (key);

-- next_timer: when the next unheld timer is due
SELECT min(due_at) FROM timers WHERE owner IS NULL AND dead_at IS NULL;

-- next_known_timer: when the next unheld timer is due that this worker can read
SELECT t.due_at FROM timers AS t JOIN streams AS s ON s.id = t.stream
WHERE t.owner IS NULL AND t.dead_at IS NULL
    AND t.version <= ((SELECT %(knows)s::jsonb) ->> (s.machine || ' ' || t.type))::bigint
    AND s.state_version
        <= ((SELECT %(knows)s::jsonb) ->> (s.machine || ' state ' || s.state_type))::bigint
ORDER BY t.due_at LIMIT 1;

-- register_worker: a new lease with a fence of its own, and what time it is
-- Time in leases is the server's; only a test sends its own along.
INSERT INTO workers (name, lease_until, serves)
SELECT %(name)s, coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) + %(lease)s, %(serves)s
RETURNING fence, lease_until - %(lease)s;

-- renew_worker: a longer lease, unless it has lapsed, and what time it is
UPDATE workers SET lease_until = (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) + %(lease)s
WHERE fence = %(fence)s AND lease_until > (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint))
RETURNING fence, lease_until - %(lease)s;

-- end_worker: a lease given back, from now on remembered as lapsed
UPDATE workers SET lease_until = least(lease_until, (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)))
WHERE fence = %(fence)s;

-- live_workers: who is at work
SELECT fence, name, lease_until, serves FROM workers
WHERE lease_until > (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) ORDER BY fence;

-- lapsed_workers: leases that ran out so long ago
SELECT fence FROM workers
WHERE lease_until <= (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - %(ago)s;

-- forget_workers: leases that lapsed long ago
DELETE FROM workers WHERE lease_until <= (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)) - %(ago)s;

-- dead_owners: fences under which something is held and that no living worker has
-- One step in the index for each fence, however much it holds.
WITH RECURSIVE holding (fence) AS (
    SELECT min(owner) FROM outbox WHERE owner IS NOT NULL UNION ALL
    SELECT (SELECT min(owner) FROM outbox WHERE owner > fence) FROM holding WHERE fence IS NOT NULL),
waiting (fence) AS (
    SELECT min(owner) FROM timers WHERE owner IS NOT NULL UNION ALL
    SELECT (SELECT min(owner) FROM timers WHERE owner > fence) FROM waiting WHERE fence IS NOT NULL)
SELECT fence FROM (SELECT fence FROM holding UNION SELECT fence FROM waiting) AS owners
WHERE fence IS NOT NULL AND fence NOT IN (SELECT w.fence FROM workers AS w
    WHERE w.lease_until > (SELECT coalesce(%(now)s, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)));

-- free_effects: effects of dead workers, one attempt the poorer
UPDATE outbox SET owner = NULL, attempts = attempts + 1 WHERE owner = ANY (%(fences)s);

-- free_timers: timers of dead workers
UPDATE timers SET owner = NULL WHERE owner = ANY (%(fences)s);

-- effects_under: what a fence holds
SELECT stream, seq, n FROM outbox WHERE owner = %(fence)s;

-- release_some: effects that a worker holds and knows nothing of
UPDATE outbox SET owner = NULL WHERE owner = %(fence)s AND (stream, seq, n) IN (
    SELECT (k.key ->> 0)::bigint, (k.key ->> 1)::bigint, (k.key ->> 2)::bigint
    FROM json_array_elements(%(keys)s::json) AS k (key));

-- release_effects: effects a worker gives back unharmed
UPDATE outbox SET owner = NULL WHERE owner = %(fence)s;

-- release_timers: timers a worker gives back
UPDATE timers SET owner = NULL WHERE owner = %(fence)s;

-- get_stream: one stream
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams WHERE name = %(name)s;

-- list_streams: streams, newest first
SELECT id, name, machine, version, state_type, state_version, state AS data, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams
WHERE (%(machine)s::text IS NULL OR machine = %(machine)s) AND (%(before)s::bigint IS NULL OR id < %(before)s)
    AND (%(ended)s::boolean IS NULL OR (ended_at IS NOT NULL) = %(ended)s)
    AND (%(scope)s::text = '' OR substr(name, length(machine) + 2, length(%(scope)s) + 1) = %(scope)s || '/')
ORDER BY id DESC LIMIT %(limit)s;

-- streams_by_value: streams with a value of an attribute that meet all clauses, newest first
SELECT s.id, s.name, s.machine, s.version, s.state_type, s.state_version, s.state AS data,
    s.created_at, s.updated_at, s.ended_at, s.queue, s.kept_from
FROM attributes AS a JOIN streams AS s ON s.id = a.stream
WHERE a.machine = %(machine)s AND a.name = %(name)s AND a.value = %(value)s
    AND (%(before)s::bigint IS NULL OR a.stream < %(before)s)
    AND (%(ended)s::boolean IS NULL OR (s.ended_at IS NOT NULL) = %(ended)s)
    AND (%(scope)s::text = '' OR substr(s.name, length(s.machine) + 2, length(%(scope)s) + 1) = %(scope)s || '/')
    AND NOT EXISTS (
        SELECT 1 FROM json_to_recordset(%(clauses)s::json) AS c (name text, ranges json, but text)
        WHERE NOT EXISTS (
            SELECT 1 FROM attributes AS o, json_array_elements(c.ranges) AS r
            WHERE o.stream = a.stream AND o.name = c.name AND o.value >= r ->> 0
                AND o.value <= r ->> 1 AND o.value IS DISTINCT FROM c.but))
ORDER BY a.stream DESC LIMIT %(limit)s;

-- streams_by_range: streams with an attribute in a range that meet all clauses, newest first
SELECT id, name, machine, version, state_type, state_version, state AS data, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams WHERE id IN (
    SELECT a.stream FROM attributes AS a JOIN streams AS s ON s.id = a.stream
    WHERE a.machine = %(machine)s AND a.name = %(name)s AND a.value >= %(low)s
        AND a.value <= %(high)s
        AND (%(before)s::bigint IS NULL OR a.stream < %(before)s)
        AND (%(ended)s::boolean IS NULL OR (s.ended_at IS NOT NULL) = %(ended)s)
        AND (%(scope)s::text = '' OR substr(s.name, length(s.machine) + 2, length(%(scope)s) + 1) = %(scope)s || '/')
        AND NOT EXISTS (
            SELECT 1 FROM json_to_recordset(%(clauses)s::json) AS c (name text, ranges json, but text)
            WHERE NOT EXISTS (
                SELECT 1 FROM attributes AS o, json_array_elements(c.ranges) AS r
                WHERE o.stream = a.stream AND o.name = c.name AND o.value >= r ->> 0
                    AND o.value <= r ->> 1 AND o.value IS DISTINCT FROM c.but))
    ORDER BY a.stream DESC LIMIT %(limit)s)
ORDER BY id DESC;

-- count_values: how many streams have an attribute in a range, counted up to a bound
SELECT count(*) FROM (
    SELECT 1 FROM attributes
    WHERE machine = %(machine)s AND name = %(name)s AND value >= %(low)s AND value <= %(high)s
    LIMIT %(most)s) AS found;

-- streams_of: the streams of a machine page by page, oldest first
SELECT id, name FROM streams
WHERE machine = %(machine)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- forget_attributes: attributes that a machine no longer declares
DELETE FROM attributes WHERE machine = %(machine)s AND name <> ALL (%(names)s);

-- stream_events: one stream's events in order
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, e.tx::text::bigint
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE s.name = %(name)s AND e.seq > %(after)s AND e.seq >= s.kept_from
ORDER BY e.seq LIMIT %(limit)s;

-- feed: all events in the order of their commits
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, e.tx::text::bigint
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE (e.tx, e.position) > (%(tx)s::text::xid8, %(position)s)
    AND e.tx < pg_snapshot_xmin(pg_current_snapshot()) AND e.seq >= s.kept_from
ORDER BY e.tx, e.position LIMIT %(limit)s;

-- feed_end: where the feed stands now
-- By the column: "tx" alone is what is selected, by which all events would have to be sorted.
SELECT e.tx::text::bigint, e.position FROM events AS e
WHERE e.tx < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY e.tx DESC, e.position DESC LIMIT 1;

-- restored_events: events from a cluster whose transaction numbers were higher than ours
SELECT 1 FROM events WHERE tx >= pg_snapshot_xmax(pg_current_snapshot()) LIMIT 1;

-- renumber_events: after a restore, all of them count as long committed, in their old order
UPDATE events SET tx = '3' WHERE tx > '3';

-- restart_projections: their bookmarks named the old numbers
UPDATE projections SET tx = 0, position = -1;

-- clear_all_projected: and so did their rows
DELETE FROM projected;

-- notify: tell other processes that there is work
SELECT pg_notify(%(channel)s, '');

-- server_process: which process of the server answers us
SELECT pg_backend_pid();

-- set_settings: for this session, or only for this transaction
SELECT set_config(key, value, %(local)s) FROM json_each_text(%(settings)s::json);

-- store_clock: what time the database has
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- list_effects: effects waiting, held or dead
SELECT s.name, o.stream, o.seq, o.n, o.type, o.version, o.data, o.attempts, o.due_at, o.owner,
    o.dead_at, o.error, o.queue
FROM outbox AS o JOIN streams AS s ON s.id = o.stream
WHERE (%(dead)s::boolean IS NULL OR (o.dead_at IS NOT NULL) = %(dead)s) AND (%(name)s::text IS NULL OR s.name = %(name)s)
    AND (o.stream, o.seq, o.n) > (%(stream)s, %(seq)s, %(n)s)
ORDER BY o.stream, o.seq, o.n LIMIT %(limit)s;

-- move_streams: from now on these streams' effects go to another queue
UPDATE streams SET queue = %(queue)s WHERE name = ANY (%(names)s);

-- move_effects: what these streams have asked for goes along, held or not
UPDATE outbox SET queue = %(queue)s WHERE stream IN (SELECT id FROM streams WHERE name = ANY (%(names)s));

-- waiting_effects: what nobody holds, by queue and by what it takes to perform it
SELECT queue, machine, type, version, count(*), min(due_at) FROM outbox
WHERE owner IS NULL AND dead_at IS NULL GROUP BY queue, machine, type, version
ORDER BY queue, machine, type, version;

-- revive_effect: a dead effect starts over
UPDATE outbox SET dead_at = NULL, owner = NULL, attempts = 0, due_at = %(now)s
WHERE stream = %(stream)s AND seq = %(seq)s AND n = %(n)s AND dead_at IS NOT NULL RETURNING stream;

-- discard_effect: a dead effect is given up
DELETE FROM outbox WHERE stream = %(stream)s AND seq = %(seq)s AND n = %(n)s AND dead_at IS NOT NULL
RETURNING stream;

-- list_timers: timers that wait, are held or dead
SELECT s.name, t.name, t.type, t.attempts, t.due_at, t.owner, t.dead_at, t.error
FROM timers AS t JOIN streams AS s ON s.id = t.stream
WHERE (%(dead)s::boolean IS NULL OR (t.dead_at IS NOT NULL) = %(dead)s)
ORDER BY t.stream, t.name LIMIT %(limit)s;

-- revive_timer: a dead timer fires anew
UPDATE timers SET dead_at = NULL, error = NULL, owner = NULL, attempts = 0, due_at = %(now)s
WHERE stream = (SELECT id FROM streams WHERE name = %(stream)s) AND name = %(timer)s
    AND dead_at IS NOT NULL
RETURNING stream;

-- discard_timer: a dead timer is given up
DELETE FROM timers
WHERE stream = (SELECT id FROM streams WHERE name = %(stream)s) AND name = %(timer)s
    AND dead_at IS NOT NULL
RETURNING stream;

-- oldest_rows: since when effects and timers that are not dead have waited, and the dead timers
SELECT (SELECT min(due_at) FROM outbox WHERE dead_at IS NULL),
    (SELECT min(due_at) FROM timers WHERE owner IS NULL AND dead_at IS NULL),
    (SELECT count(*) FROM timers WHERE dead_at IS NOT NULL);

-- held_by_worker: how many effects are held under each fence
SELECT owner, count(*) FROM outbox WHERE owner IS NOT NULL GROUP BY owner;

-- count_rows: how much of everything there is
SELECT (SELECT count(*) FROM streams WHERE ended_at IS NULL), (SELECT count(*) FROM outbox),
    (SELECT count(*) FROM outbox WHERE dead_at IS NOT NULL), (SELECT count(*) FROM timers);

-- ended_streams: streams that ended before a time and still have events
SELECT id, name FROM streams WHERE ended_at < %(before)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- archived_events: the events of one stream, for export
SELECT seq, type, version, data, cause, at FROM events
WHERE stream = %(stream)s AND seq > %(after)s ORDER BY seq LIMIT %(limit)s;

-- living_streams: streams that live on and are old enough to have old events
SELECT id, name FROM streams
WHERE ended_at IS NULL AND created_at < %(before)s AND id > %(after)s ORDER BY id LIMIT %(limit)s;

-- get_snapshot: a stream's state after the last event that left
SELECT seq, state_type, state_version, state, at FROM snapshots WHERE stream = %(stream)s;

-- list_snapshots: the same of all streams, by their numbers
SELECT n.stream, s.name, n.seq, n.state_type, n.state_version, n.state AS data, n.at
FROM snapshots AS n JOIN streams AS s ON s.id = n.stream
WHERE n.stream > %(after)s ORDER BY n.stream LIMIT %(limit)s;

-- hold_projections: no bookmark moves and no projection begins until this transaction ends
LOCK TABLE projections IN SHARE MODE;

-- trim_stream: events before this one count as gone, unless a projection has yet to read one
UPDATE streams SET kept_from = %(kept_from)s
WHERE id = %(stream)s AND kept_from = %(seen)s AND NOT EXISTS (
    SELECT 1 FROM projections AS p WHERE p.name = ANY (%(names)s) AND (p.tx, p.position) < (
        SELECT e.tx::text::bigint, e.position FROM events AS e WHERE e.stream = %(stream)s AND e.seq = %(kept_from)s - 1));

-- put_snapshot: the state they led to, if they went
INSERT INTO snapshots (stream, seq, state_type, state_version, state, at)
SELECT id, kept_from - 1, %(state_type)s, %(state_version)s, %(state)s, %(at)s FROM streams
WHERE id = %(stream)s AND kept_from = %(kept_from)s
ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, state_type = excluded.state_type,
    state_version = excluded.state_version, state = excluded.state, at = excluded.at;

-- delete_trimmed: events that are gone, some at a time
DELETE FROM events WHERE stream = %(stream)s AND seq < %(before)s
    AND seq < (SELECT kept_from FROM streams WHERE id = %(stream)s);

-- delete_snapshot: what an archived stream had left
DELETE FROM snapshots WHERE stream = %(stream)s;

-- forget_commands: ids of a stream's commands that no caller sends again
DELETE FROM commands WHERE stream = %(stream)s AND at < %(before)s;

-- take_turn: what one process on a store does at a time, unless another did it lately
INSERT INTO facts (name, value) VALUES (%(name)s, %(now)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE facts.value::bigint <= %(due)s
RETURNING value;

-- delete_events: events that are safely in a file
DELETE FROM events WHERE stream = %(stream)s;

-- delete_commands: command ids of an archived stream
DELETE FROM commands WHERE stream = %(stream)s;

-- delete_unborn_commands: ids of commands that changed nothing where there was no stream
DELETE FROM commands WHERE stream = 0 AND at < %(before)s;

-- delete_attributes: what an archived stream was found by
DELETE FROM attributes WHERE stream = %(stream)s;

-- delete_stream: the stream itself, if it has not moved since it was exported
DELETE FROM streams WHERE id = %(stream)s AND version = %(version)s AND ended_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.stream = %(stream)s)
    AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.stream = %(stream)s)
RETURNING id;

-- get_projection: how far a projection has read
SELECT version, tx, position FROM projections WHERE name = %(name)s;

-- start_projection: a new projection begins, or a newer version of it, unless another began it
INSERT INTO projections (name, version, tx, position) VALUES (%(name)s, %(version)s, 0, -1)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = -1
WHERE projections.version < excluded.version;

-- restart_projection: it begins again because somebody said so
INSERT INTO projections (name, version, tx, position) VALUES (%(name)s, %(version)s, 0, -1)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = -1;

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
INSERT INTO tokens (id, name, role, scope, digest, created_at, expires_at)
VALUES (%(id)s, %(name)s, %(role)s, %(scope)s, %(digest)s, %(now)s, %(expires)s);

-- get_token: one token by its public part
SELECT id, name, role, scope, digest, created_at, expires_at, revoked_at FROM tokens WHERE id = %(id)s;

-- list_tokens: all tokens, oldest first
SELECT id, name, role, scope, digest, created_at, expires_at, revoked_at FROM tokens
ORDER BY created_at, id;

-- revoke_token: from now on refused
UPDATE tokens SET revoked_at = %(now)s WHERE id = %(id)s AND revoked_at IS NULL RETURNING id;

-- insert_session: a browser signed in
INSERT INTO sessions (id, token, digest, created_at, expires_at)
VALUES (%(id)s, %(token)s, %(digest)s, %(now)s, %(expires)s);

-- get_session: one session by its public part
SELECT token, digest, expires_at FROM sessions WHERE id = %(id)s;

-- end_session: signed out
DELETE FROM sessions WHERE id = %(id)s AND digest = %(digest)s;

-- forget_sessions: those that are over
DELETE FROM sessions WHERE expires_at <= %(now)s;

-- get_fact: a single value about this store
SELECT value FROM facts WHERE name = %(name)s;

-- put_fact: a value that is set once
INSERT INTO facts (name, value) VALUES (%(name)s, %(value)s) ON CONFLICT (name) DO NOTHING;

-- applied_migrations: what the schema has been through; its second column came with 0006
SELECT * FROM migrations ORDER BY name;

-- mark_migration: which programs may go on after it
UPDATE migrations SET compatible_with = %s WHERE name = %s;

-- swap_fact: another value, if it is still the one that was read
UPDATE facts SET value = %(value)s WHERE name = %(name)s AND value = %(seen)s;

-- where_we_are: which database of which cluster, and on which line of its history
SELECT (SELECT system_identifier FROM pg_control_system()) || '.' ||
    left(pg_walfile_name(pg_current_wal_lsn()), 8) || '.' ||
    (SELECT oid FROM pg_database WHERE datname = current_database());

-- set_fact: a value that is set again
INSERT INTO facts (name, value) VALUES (%(name)s, %(value)s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;
