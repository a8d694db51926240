-- Scopes: a token may be good for one project or namespace only.

ALTER TABLE tokens ADD COLUMN scope TEXT NOT NULL DEFAULT '';
