-- Lanes: only the first effect of an ordered stream can be found by a claim. Withdrawal: an effect
-- that is no longer wanted goes as soon as nobody holds it. Timers may lie dead, as effects do.

ALTER TABLE outbox ADD COLUMN blocked boolean NOT NULL DEFAULT false;
ALTER TABLE outbox ADD COLUMN withdrawn boolean NOT NULL DEFAULT false;
UPDATE outbox SET blocked = true WHERE in_order AND EXISTS (
    SELECT FROM outbox AS e
    WHERE e.stream = outbox.stream AND (e.seq, e.n) < (outbox.seq, outbox.n));

DROP INDEX outbox_waiting;
CREATE INDEX outbox_waiting ON outbox (queue, machine, type, version, blocked, due_at)
WHERE owner IS NULL AND dead_at IS NULL;

-- The store keeps both by itself, so that no way in which a row comes, goes or is let go of can
-- forget it, also not that of an older program which is still running.
CREATE FUNCTION outbox_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE outbox SET blocked = true
    WHERE stream = NEW.stream AND seq = NEW.seq AND n = NEW.n AND EXISTS (
        SELECT FROM outbox AS e
        WHERE e.stream = NEW.stream AND (e.seq, e.n) < (NEW.seq, NEW.n));
    RETURN NULL;
END
$$;
CREATE TRIGGER outbox_block AFTER INSERT ON outbox
FOR EACH ROW WHEN (NEW.in_order) EXECUTE FUNCTION outbox_block();

-- Whoever adds to a lane has its stream's row locked. Without the lock here, the last of a lane
-- could leave while another is added behind it: the one would see nobody to let go, the other
-- somebody to wait for, and the lane would stand still.
CREATE FUNCTION outbox_unblock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM streams WHERE id = OLD.stream FOR NO KEY UPDATE;
    UPDATE outbox SET blocked = false WHERE stream = OLD.stream AND blocked AND (seq, n) = (
        SELECT e.seq, e.n FROM outbox AS e
        WHERE e.stream = OLD.stream ORDER BY e.seq, e.n LIMIT 1);
    RETURN NULL;
END
$$;
CREATE TRIGGER outbox_unblock AFTER DELETE ON outbox
FOR EACH ROW WHEN (OLD.in_order AND NOT OLD.blocked) EXECUTE FUNCTION outbox_unblock();

CREATE FUNCTION outbox_withdraw() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM outbox WHERE stream = NEW.stream AND seq = NEW.seq AND n = NEW.n;
    RETURN NULL;
END
$$;
CREATE TRIGGER outbox_withdraw AFTER UPDATE OF owner, withdrawn ON outbox
FOR EACH ROW WHEN (NEW.withdrawn AND NEW.owner IS NULL) EXECUTE FUNCTION outbox_withdraw();

ALTER TABLE timers ADD COLUMN dead_at bigint;
ALTER TABLE timers ADD COLUMN error text;
DROP INDEX timers_waiting;
CREATE INDEX timers_waiting ON timers (due_at) WHERE owner IS NULL AND dead_at IS NULL;
CREATE INDEX timers_dead ON timers (stream, name) WHERE dead_at IS NOT NULL;
