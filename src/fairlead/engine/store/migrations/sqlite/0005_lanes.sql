-- Lanes: only the first effect of an ordered stream can be found by a claim. Withdrawal: an effect
-- that is no longer wanted goes as soon as nobody holds it. Timers may lie dead, as effects do.

ALTER TABLE outbox ADD COLUMN blocked INTEGER NOT NULL DEFAULT 0;
ALTER TABLE outbox ADD COLUMN withdrawn INTEGER NOT NULL DEFAULT 0;
UPDATE outbox SET blocked = 1 WHERE in_order AND (seq, n) <> (
    SELECT e.seq, e.n FROM outbox AS e
    WHERE e.stream = outbox.stream ORDER BY e.seq, e.n LIMIT 1);

DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting
ON outbox (queue, machine, type, version, blocked, due_at, owner, dead_at)
WHERE owner IS NULL AND dead_at IS NULL;

-- The store keeps both by itself, so that no way in which a row goes or is let go of can forget
-- it, also not that of an older program which is still running. What comes is blocked by the
-- statement that adds it: a trigger would cost every effect 2 us, whether it is in a lane or not.
CREATE TRIGGER outbox_unblock AFTER DELETE ON outbox WHEN OLD.in_order AND NOT OLD.blocked
BEGIN
    UPDATE outbox SET blocked = 0 WHERE stream = OLD.stream AND blocked AND (seq, n) = (
        SELECT seq, n FROM outbox WHERE stream = OLD.stream ORDER BY seq, n LIMIT 1);
END;
CREATE TRIGGER outbox_withdraw AFTER UPDATE OF owner, withdrawn ON outbox
WHEN NEW.withdrawn AND NEW.owner IS NULL
BEGIN
    DELETE FROM outbox WHERE stream = NEW.stream AND seq = NEW.seq AND n = NEW.n;
END;

ALTER TABLE timers ADD COLUMN dead_at INTEGER;
ALTER TABLE timers ADD COLUMN error TEXT;
DROP INDEX timers_waiting;
CREATE INDEX timers_waiting ON timers (due_at) WHERE owner IS NULL AND dead_at IS NULL;
CREATE INDEX timers_dead ON timers (stream, name) WHERE dead_at IS NOT NULL;
