-- load_streams: the streams of a batch as they stand
SELECT id, name, version, state_type, state_version, state, ended_at IS NOT NULL,
    CASE WHEN machine IN (SELECT value FROM json_each(:ordered))
        THEN (SELECT count(*) FROM (SELECT 1 FROM outbox WHERE outbox.stream = streams.id LIMIT 2))
        ELSE 0 END, queue
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
INSERT INTO streams (id, name, machine, version, state_type, state_version, state, ended_at, queue,
    created_at, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- update_states: next states, each on top of the version it was decided from
UPDATE streams SET version = ?, state_type = ?, state_version = ?, state = ?, ended_at = ?,
    updated_at = ?
WHERE id = ? AND version = ?;

-- insert_events: what happened
INSERT INTO events (stream, seq, type, version, data, cause, at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- insert_commands: ids taken, with their answers
INSERT INTO commands (id, stream, digest, first, last, at) VALUES (?, ?, ?, ?, ?, ?);

-- put_attributes: what streams are found by from now on
INSERT INTO attributes (stream, machine, name, value) VALUES (?, ?, ?, ?)
ON CONFLICT (stream, name) DO UPDATE SET value = excluded.value;

-- drop_attributes: attributes that streams no longer have
DELETE FROM attributes WHERE stream = ? AND name = ?;

-- insert_effects: what is asked of the world, in the queue of its stream
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at, epoch, queue,
    machine)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- insert_lane_effects: the same, behind others of its lane
INSERT INTO outbox (stream, seq, n, type, version, data, in_order, owner, due_at, epoch, queue,
    machine, blocked)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, EXISTS (SELECT 1 FROM outbox WHERE stream = ?));

-- settle_effects: effects that are done, if we still hold them
DELETE FROM outbox WHERE stream = ? AND seq = ? AND n = ? AND owner = ?;

-- withdraw_effects: effects no longer wanted; those that nobody holds go with it
UPDATE outbox SET withdrawn = 1
WHERE stream = ? AND seq < ? AND type = ? AND (? IS NULL OR data = ?);

-- postpone_effects: effects that failed or found no place, if we still hold them
UPDATE outbox SET attempts = attempts + ?, owner = NULL, due_at = coalesce(?, due_at), dead_at = ?,
    error = coalesce(?, error)
WHERE stream = ? AND seq = ? AND n = ? AND owner = ?;

-- set_timers: timers, each replacing one of its name
INSERT INTO timers (stream, name, seq, due_at, type, version, data) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (stream, name) DO UPDATE SET seq = excluded.seq, due_at = excluded.due_at,
    type = excluded.type, version = excluded.version, data = excluded.data, owner = NULL,
    attempts = 0, dead_at = NULL, error = NULL;

-- fire_timers: timers that have been delivered, if they are still the same setting
DELETE FROM timers WHERE stream = ? AND name = ? AND seq = ?;

-- cancel_timers: timers no longer wanted
DELETE FROM timers WHERE stream = ? AND name = ?;

-- end_timers: timers of streams that ended
DELETE FROM timers WHERE stream = ?;

-- claim_effects: due effects nobody holds and this worker serves, the oldest first
-- To a key of `serves` may come how many of its kind are taken at most, and which streams are not;
-- 256 rows are read to get past those, never a whole backlog. The look at the first of the
-- lane is for effects of an older program, which does not say that they are behind others.
UPDATE outbox SET owner = :fence WHERE (stream, seq, n) IN (
    SELECT k.value ->> 0, k.value ->> 1, k.value ->> 2
    FROM json_each(:serves) AS s, json_each((
        SELECT json_group_array(json_array(stream, seq, n, due_at)) FROM (
            SELECT o.stream, o.seq, o.n, o.due_at FROM outbox AS o
            WHERE o.queue = s.value ->> 0 AND o.machine = s.value ->> 1 AND o.type = s.value ->> 2
                AND o.version = s.value ->> 3 AND o.blocked = 0
                AND o.owner IS NULL AND o.dead_at IS NULL AND o.due_at <= :now
                AND (s.value ->> 6 IS NULL OR EXISTS (
                    SELECT 1 FROM streams AS t WHERE t.id = o.stream
                        AND t.state_version <= s.value -> 6 ->> t.state_type))
                AND (NOT o.in_order OR (o.seq, o.n) = (
                    SELECT e.seq, e.n FROM outbox AS e
                    WHERE e.stream = o.stream ORDER BY e.seq, e.n LIMIT 1))
            ORDER BY o.due_at LIMIT max(:limit, 256))
        WHERE stream NOT IN (SELECT value FROM json_each(s.value, '$[5]')))) AS k
    WHERE k.key < coalesce(s.value ->> 4, :limit)
    ORDER BY k.value ->> 3 LIMIT :limit)
RETURNING stream, seq, n, type, version, data, attempts, queue,
    (SELECT name FROM streams WHERE streams.id = outbox.stream), epoch;

-- claim_newest: the same, the newest first, so that newcomers do not wait for all of a backlog
UPDATE outbox SET owner = :fence WHERE (stream, seq, n) IN (
    SELECT k.value ->> 0, k.value ->> 1, k.value ->> 2
    FROM json_each(:serves) AS s, json_each((
        SELECT json_group_array(json_array(stream, seq, n, due_at)) FROM (
            SELECT o.stream, o.seq, o.n, o.due_at FROM outbox AS o
            WHERE o.queue = s.value ->> 0 AND o.machine = s.value ->> 1 AND o.type = s.value ->> 2
                AND o.version = s.value ->> 3 AND o.blocked = 0
                AND o.owner IS NULL AND o.dead_at IS NULL AND o.due_at <= :now
                AND (s.value ->> 6 IS NULL OR EXISTS (
                    SELECT 1 FROM streams AS t WHERE t.id = o.stream
                        AND t.state_version <= s.value -> 6 ->> t.state_type))
                AND (NOT o.in_order OR (o.seq, o.n) = (
                    SELECT e.seq, e.n FROM outbox AS e
                    WHERE e.stream = o.stream ORDER BY e.seq, e.n LIMIT 1))
            ORDER BY o.due_at DESC LIMIT max(:limit, 256))
        WHERE stream NOT IN (SELECT value FROM json_each(s.value, '$[5]')))) AS k
    WHERE k.key < coalesce(s.value ->> 4, :limit)
    ORDER BY k.value ->> 3 DESC LIMIT :limit)
RETURNING stream, seq, n, type, version, data, attempts, queue,
    (SELECT name FROM streams WHERE streams.id = outbox.stream), epoch;

-- claim_timers: due timers nobody holds and this worker can read
UPDATE timers SET owner = :fence WHERE (stream, name) IN (
    SELECT t.stream, t.name FROM timers AS t JOIN streams AS s ON s.id = t.stream
    WHERE t.owner IS NULL AND t.dead_at IS NULL AND t.due_at <= :now
        AND t.version <= :knows ->> (s.machine || ' ' || t.type)
        AND s.state_version <= :knows ->> (s.machine || ' state ' || s.state_type)
    ORDER BY t.due_at LIMIT :limit)
RETURNING stream, name, seq, type, version, data, due_at, attempts,
    (SELECT name FROM streams WHERE streams.id = timers.stream);

-- postpone_timer: a timer whose delivery failed comes again, or lies dead until a person looks
UPDATE timers SET owner = NULL, attempts = attempts + :attempts, due_at = :due,
    dead_at = :dead, error = :error
WHERE stream = :stream AND name = :name AND seq = :seq;

-- next_effect: when the next unheld effect is due that this worker serves
SELECT min((SELECT o.due_at FROM outbox AS o
    WHERE o.queue = s.value ->> 0 AND o.machine = s.value ->> 1 AND o.type = s.value ->> 2
        AND o.version = s.value ->> 3 AND o.blocked = 0 AND o.owner IS NULL AND o.dead_at IS NULL
        AND (s.value ->> 6 IS NULL OR EXISTS (
            SELECT 1 FROM streams AS t WHERE t.id = o.stream
                AND t.state_version <= s.value -> 6 ->> t.state_type))
    ORDER BY o.due_at LIMIT 1))
FROM json_each(:serves) AS s;

-- next_timer: when the next unheld timer is due
SELECT min(due_at) FROM timers WHERE owner IS NULL AND dead_at IS NULL;

-- next_known_timer: when the next unheld timer is due that this worker can read
SELECT t.due_at FROM timers AS t JOIN streams AS s ON s.id = t.stream
WHERE t.owner IS NULL AND t.dead_at IS NULL
    AND t.version <= :knows ->> (s.machine || ' ' || t.type)
    AND s.state_version <= :knows ->> (s.machine || ' state ' || s.state_type)
ORDER BY t.due_at LIMIT 1;

-- register_worker: a new lease with a fence of its own, and what time it is
-- Time in leases passes as this machine has been running (docs/decisions/0034); only a test
-- sends its own along.
INSERT INTO workers (name, lease_until, serves) VALUES (:name,
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero')) + :lease, :serves)
RETURNING fence, lease_until - :lease;

-- renew_worker: a longer lease, unless it has lapsed, and what time it is
UPDATE workers SET lease_until =
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero')) + :lease
WHERE fence = :fence AND lease_until >
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero'))
RETURNING fence, lease_until - :lease;

-- end_worker: a lease given back, from now on remembered as lapsed
UPDATE workers SET lease_until = min(lease_until,
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero')))
WHERE fence = :fence;

-- end_all_workers: whoever was at work before this machine started anew is no more
UPDATE workers SET lease_until = min(lease_until, :now);

-- live_workers: who is at work
SELECT fence, name, lease_until, serves FROM workers WHERE lease_until >
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero'))
ORDER BY fence;

-- lapsed_workers: leases that ran out so long ago
SELECT fence FROM workers WHERE lease_until + :ago <=
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero'));

-- forget_workers: leases that lapsed long ago
DELETE FROM workers WHERE lease_until + :ago <=
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero'));

-- dead_owners: fences under which something is held and that no living worker has
-- One step in the index for each fence, however much it holds.
WITH RECURSIVE holding (fence) AS (
    SELECT min(owner) FROM outbox WHERE owner IS NOT NULL UNION ALL
    SELECT (SELECT min(owner) FROM outbox WHERE owner > fence) FROM holding WHERE fence IS NOT NULL),
waiting (fence) AS (
    SELECT min(owner) FROM timers WHERE owner IS NOT NULL UNION ALL
    SELECT (SELECT min(owner) FROM timers WHERE owner > fence) FROM waiting WHERE fence IS NOT NULL)
SELECT fence FROM (SELECT fence FROM holding UNION SELECT fence FROM waiting)
WHERE fence IS NOT NULL AND fence NOT IN (SELECT w.fence FROM workers AS w WHERE w.lease_until >
    coalesce(:now, :steady + (SELECT CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero')));

-- free_effects: effects of dead workers, one attempt the poorer
UPDATE outbox SET owner = NULL, attempts = attempts + 1
WHERE owner IN (SELECT value FROM json_each(:fences));

-- free_timers: timers of dead workers
UPDATE timers SET owner = NULL WHERE owner IN (SELECT value FROM json_each(:fences));

-- effects_under: what a fence holds
SELECT stream, seq, n FROM outbox WHERE owner = :fence;

-- release_some: effects that a worker holds and knows nothing of
UPDATE outbox SET owner = NULL WHERE owner = :fence AND (stream, seq, n) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:keys));

-- release_effects: effects a worker gives back unharmed
UPDATE outbox SET owner = NULL WHERE owner = :fence;

-- release_timers: timers a worker gives back
UPDATE timers SET owner = NULL WHERE owner = :fence;

-- get_stream: one stream
SELECT id, name, machine, version, state_type, state_version, state, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams WHERE name = :name;

-- list_streams: streams, newest first
SELECT id, name, machine, version, state_type, state_version, state AS data, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams
WHERE (:machine IS NULL OR machine = :machine) AND (:before IS NULL OR id < :before)
    AND (:ended IS NULL OR (ended_at IS NOT NULL) = :ended)
    AND (:scope = '' OR substr(name, length(machine) + 2, length(:scope) + 1) = :scope || '/')
ORDER BY id DESC LIMIT :limit;

-- streams_by_value: streams with a value of an attribute that meet all clauses, newest first
SELECT s.id, s.name, s.machine, s.version, s.state_type, s.state_version, s.state AS data,
    s.created_at, s.updated_at, s.ended_at, s.queue, s.kept_from
FROM attributes AS a CROSS JOIN streams AS s ON s.id = a.stream
WHERE a.machine = :machine AND a.name = :name AND a.value = :value
    AND (:before IS NULL OR a.stream < :before)
    AND (:ended IS NULL OR (s.ended_at IS NOT NULL) = :ended)
    AND (:scope = '' OR substr(s.name, length(s.machine) + 2, length(:scope) + 1) = :scope || '/')
    AND NOT EXISTS (SELECT 1 FROM json_each(:clauses) AS c WHERE NOT EXISTS (
        SELECT 1 FROM attributes AS o, json_each(c.value ->> 'ranges') AS r
        WHERE o.stream = a.stream AND o.name = c.value ->> 'name' AND o.value >= r.value ->> 0
            AND o.value <= r.value ->> 1 AND o.value IS NOT c.value ->> 'but'))
ORDER BY a.stream DESC LIMIT :limit;

-- streams_by_range: streams with an attribute in a range that meet all clauses, newest first
SELECT id, name, machine, version, state_type, state_version, state AS data, created_at, updated_at,
    ended_at, queue, kept_from
FROM streams WHERE id IN (
    SELECT a.stream FROM attributes AS a CROSS JOIN streams AS s ON s.id = a.stream
    WHERE a.machine = :machine AND a.name = :name AND a.value >= :low AND a.value <= :high
        AND (:before IS NULL OR a.stream < :before)
        AND (:ended IS NULL OR (s.ended_at IS NOT NULL) = :ended)
        AND (:scope = '' OR substr(s.name, length(s.machine) + 2, length(:scope) + 1) = :scope || '/')
        AND NOT EXISTS (SELECT 1 FROM json_each(:clauses) AS c WHERE NOT EXISTS (
            SELECT 1 FROM attributes AS o, json_each(c.value ->> 'ranges') AS r
            WHERE o.stream = a.stream AND o.name = c.value ->> 'name' AND o.value >= r.value ->> 0
                AND o.value <= r.value ->> 1 AND o.value IS NOT c.value ->> 'but'))
    ORDER BY a.stream DESC LIMIT :limit)
ORDER BY id DESC;

-- count_values: how many streams have an attribute in a range, counted up to a bound
SELECT count(*) FROM (
    SELECT 1 FROM attributes
    WHERE machine = :machine AND name = :name AND value >= :low AND value <= :high LIMIT :most);

-- streams_of: the streams of a machine page by page, oldest first
SELECT id, name FROM streams WHERE machine = :machine AND id > :after ORDER BY id LIMIT :limit;

-- forget_attributes: attributes that a machine no longer declares
DELETE FROM attributes
WHERE machine = :machine AND name NOT IN (SELECT value FROM json_each(:names));

-- stream_events: one stream's events in order
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, 0
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE s.name = :name AND e.seq > :after AND e.seq >= s.kept_from
ORDER BY e.seq LIMIT :limit;

-- feed: all events in the order of their commits
SELECT s.name, e.seq, e.type, e.version, e.data, e.cause, e.at, e.position, 0
FROM events AS e JOIN streams AS s ON s.id = e.stream
WHERE e.position > :position AND :tx IS NOT NULL AND e.seq >= s.kept_from
ORDER BY e.position LIMIT :limit;

-- feed_end: where the feed stands now
SELECT 0, coalesce(max(position), 0) FROM events;

-- list_effects: effects waiting, held or dead
SELECT s.name, o.stream, o.seq, o.n, o.type, o.version, o.data, o.attempts, o.due_at, o.owner,
    o.dead_at, o.error, o.queue
FROM outbox AS o JOIN streams AS s ON s.id = o.stream
WHERE (:dead IS NULL OR (o.dead_at IS NOT NULL) = :dead) AND (:name IS NULL OR s.name = :name)
    AND (o.stream, o.seq, o.n) > (:stream, :seq, :n)
ORDER BY o.stream, o.seq, o.n LIMIT :limit;

-- move_streams: from now on these streams' effects go to another queue
UPDATE streams SET queue = :queue WHERE name IN (SELECT value FROM json_each(:names));

-- move_effects: what these streams have asked for goes along, held or not
UPDATE outbox SET queue = :queue WHERE stream IN (SELECT id FROM streams WHERE name IN (SELECT value FROM json_each(:names)));

-- waiting_effects: what nobody holds, by queue and by what it takes to perform it
SELECT queue, machine, type, version, count(*), min(due_at) FROM outbox
WHERE owner IS NULL AND dead_at IS NULL GROUP BY queue, machine, type, version
ORDER BY queue, machine, type, version;

-- revive_effect: a dead effect starts over
UPDATE outbox SET dead_at = NULL, owner = NULL, attempts = 0, due_at = :now
WHERE stream = :stream AND seq = :seq AND n = :n AND dead_at IS NOT NULL RETURNING stream;

-- discard_effect: a dead effect is given up
DELETE FROM outbox WHERE stream = :stream AND seq = :seq AND n = :n AND dead_at IS NOT NULL
RETURNING stream;

-- list_timers: timers that wait, are held or dead
SELECT s.name, t.name, t.type, t.attempts, t.due_at, t.owner, t.dead_at, t.error
FROM timers AS t JOIN streams AS s ON s.id = t.stream
WHERE (:dead IS NULL OR (t.dead_at IS NOT NULL) = :dead)
ORDER BY t.stream, t.name LIMIT :limit;

-- revive_timer: a dead timer fires anew
UPDATE timers SET dead_at = NULL, error = NULL, owner = NULL, attempts = 0, due_at = :now
WHERE stream = (SELECT id FROM streams WHERE name = :stream) AND name = :timer
    AND dead_at IS NOT NULL
RETURNING stream;

-- discard_timer: a dead timer is given up
DELETE FROM timers
WHERE stream = (SELECT id FROM streams WHERE name = :stream) AND name = :timer
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
SELECT id, name FROM streams WHERE ended_at < :before AND id > :after ORDER BY id LIMIT :limit;

-- archived_events: the events of one stream, for export
SELECT seq, type, version, data, cause, at FROM events
WHERE stream = :stream AND seq > :after ORDER BY seq LIMIT :limit;

-- living_streams: streams that live on and are old enough to have old events
SELECT id, name FROM streams
WHERE ended_at IS NULL AND created_at < :before AND id > :after ORDER BY id LIMIT :limit;

-- get_snapshot: a stream's state after the last event that left
SELECT seq, state_type, state_version, state, at FROM snapshots WHERE stream = :stream;

-- list_snapshots: the same of all streams, by their numbers
SELECT n.stream, s.name, n.seq, n.state_type, n.state_version, n.state AS data, n.at
FROM snapshots AS n JOIN streams AS s ON s.id = n.stream
WHERE n.stream > :after ORDER BY n.stream LIMIT :limit;

-- hold_projections: no bookmark moves and no projection begins until this transaction ends
SELECT 1;

-- trim_stream: events before this one count as gone, unless a projection has yet to read one
UPDATE streams SET kept_from = :kept_from
WHERE id = :stream AND kept_from = :seen AND NOT EXISTS (
    SELECT 1 FROM projections AS p WHERE p.name IN (SELECT value FROM json_each(:names)) AND p.position < (
        SELECT position FROM events AS e WHERE e.stream = :stream AND e.seq = :kept_from - 1));

-- put_snapshot: the state they led to, if they went
INSERT INTO snapshots (stream, seq, state_type, state_version, state, at)
SELECT id, kept_from - 1, :state_type, :state_version, :state, :at FROM streams
WHERE id = :stream AND kept_from = :kept_from
ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, state_type = excluded.state_type,
    state_version = excluded.state_version, state = excluded.state, at = excluded.at;

-- delete_trimmed: events that are gone, some at a time
DELETE FROM events WHERE stream = :stream AND seq < :before
    AND seq < (SELECT kept_from FROM streams WHERE id = :stream);

-- delete_snapshot: what an archived stream had left
DELETE FROM snapshots WHERE stream = :stream;

-- forget_commands: ids of a stream's commands that no caller sends again
DELETE FROM commands WHERE stream = :stream AND at < :before;

-- take_turn: what one process on a store does at a time, unless another did it lately
INSERT INTO facts (name, value) VALUES (:name, :now)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE CAST(facts.value AS INTEGER) <= :due
RETURNING value;

-- delete_events: events that are safely in a file
DELETE FROM events WHERE stream = :stream;

-- delete_commands: command ids of an archived stream
DELETE FROM commands WHERE stream = :stream;

-- delete_unborn_commands: ids of commands that changed nothing where there was no stream
DELETE FROM commands WHERE stream = 0 AND at < :before;

-- delete_attributes: what an archived stream was found by
DELETE FROM attributes WHERE stream = :stream;

-- delete_stream: the stream itself, if it has not moved since it was exported
DELETE FROM streams WHERE id = :stream AND version = :version AND ended_at IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.stream = :stream)
    AND NOT EXISTS (SELECT 1 FROM timers WHERE timers.stream = :stream)
RETURNING id;

-- get_projection: how far a projection has read
SELECT version, tx, position FROM projections WHERE name = :name;

-- start_projection: a new projection begins, or a newer version of it, unless another began it
INSERT INTO projections (name, version, tx, position) VALUES (:name, :version, 0, -1)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = -1
WHERE projections.version < excluded.version;

-- restart_projection: it begins again because somebody said so
INSERT INTO projections (name, version, tx, position) VALUES (:name, :version, 0, -1)
ON CONFLICT (name) DO UPDATE SET version = excluded.version, tx = 0, position = -1;

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
INSERT INTO tokens (id, name, role, scope, digest, created_at, expires_at)
VALUES (:id, :name, :role, :scope, :digest, :now, :expires);

-- get_token: one token by its public part
SELECT id, name, role, scope, digest, created_at, expires_at, revoked_at FROM tokens WHERE id = :id;

-- list_tokens: all tokens, oldest first
SELECT id, name, role, scope, digest, created_at, expires_at, revoked_at FROM tokens
ORDER BY created_at, id;

-- revoke_token: from now on refused
UPDATE tokens SET revoked_at = :now WHERE id = :id AND revoked_at IS NULL RETURNING id;

-- insert_session: a browser signed in
INSERT INTO sessions (id, token, digest, created_at, expires_at)
VALUES (:id, :token, :digest, :now, :expires);

-- get_session: one session by its public part
SELECT token, digest, expires_at FROM sessions WHERE id = :id;

-- end_session: signed out
DELETE FROM sessions WHERE id = :id AND digest = :digest;

-- forget_sessions: those that are over
DELETE FROM sessions WHERE expires_at <= :now;

-- get_fact: a single value about this store
SELECT value FROM facts WHERE name = :name;

-- put_fact: a value that is set once
INSERT INTO facts (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING;

-- applied_migrations: what the schema has been through; its second column came with 0006
SELECT * FROM migrations ORDER BY name;

-- mark_migration: which programs may go on after it
UPDATE migrations SET compatible_with = ? WHERE name = ?;

-- swap_fact: another value, if it is still the one that was read
UPDATE facts SET value = :value WHERE name = :name AND value = :seen;

-- set_fact: a value, whatever it was before
INSERT INTO facts (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- store_clock: what time the leases of this file have
SELECT :steady + CAST(value AS INTEGER) FROM facts WHERE name = 'clock_zero';
