-- What a worker holds is found by its fence, not by reading all that waits; and an effect keeps
-- the epoch of the store in which it was born, which is part of its idempotency key.

CREATE INDEX outbox_held ON outbox (owner) WHERE owner IS NOT NULL;
CREATE INDEX timers_held ON timers (owner) WHERE owner IS NOT NULL;
ALTER TABLE outbox ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
