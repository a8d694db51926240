-- Queues: a stream may say who performs its effects, and a claim finds only what it can do.

ALTER TABLE streams ADD COLUMN queue TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN queue TEXT NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN machine TEXT NOT NULL DEFAULT '';
UPDATE outbox SET machine = streams.machine FROM streams WHERE streams.id = outbox.stream;
-- What a worker performs: a JSON list of [queue, machine, type of effect, its version].
ALTER TABLE workers ADD COLUMN serves TEXT NOT NULL DEFAULT '[]';

-- Everything that makes an effect fit for a worker comes before the time: rows that a worker
-- cannot perform are never read by it, however many they are.
-- The last two let what waits be counted from the index alone: SQLite asks for them again.
DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting ON outbox (queue, machine, type, version, due_at, owner, dead_at)
WHERE owner IS NULL AND dead_at IS NULL;
