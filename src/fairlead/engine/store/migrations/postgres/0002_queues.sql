-- Queues: a stream may say who performs its effects, and a claim finds only what it can do.

ALTER TABLE streams ADD COLUMN queue text NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN queue text NOT NULL DEFAULT '';
ALTER TABLE outbox ADD COLUMN machine text NOT NULL DEFAULT '';
UPDATE outbox SET machine = streams.machine FROM streams WHERE streams.id = outbox.stream;
-- What a worker performs: a JSON list of [queue, machine, type of effect, its version].
ALTER TABLE workers ADD COLUMN serves text NOT NULL DEFAULT '[]';

-- Everything that makes an effect fit for a worker comes before the time: rows that a worker
-- cannot perform are never read by it, however many they are.
DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting ON outbox (queue, machine, type, version, due_at)
WHERE owner IS NULL AND dead_at IS NULL;
