-- Sessions: what the page's cookie stands for, in place of a token.
-- compatible with: 0008

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    token TEXT NOT NULL,
    digest TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
