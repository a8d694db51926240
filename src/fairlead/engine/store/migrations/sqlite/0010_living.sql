-- Streams that live on, so that counting and walking them does not read those that ended.
-- compatible with: 0008

CREATE INDEX streams_living ON streams (id) WHERE ended_at IS NULL;
