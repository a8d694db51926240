-- Sessions: what the page's cookie stands for, in place of a token.
-- compatible with: 0008

CREATE TABLE sessions (
    id text PRIMARY KEY,
    token text NOT NULL,
    digest text NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
