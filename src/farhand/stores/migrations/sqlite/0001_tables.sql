-- What farhand.stores.base describes. Small columns come before large ones: a row is read from its front.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE threads (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    run TEXT NOT NULL,
    seq INTEGER NOT NULL,
    said INTEGER NOT NULL,
    scene TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX threads_owner ON threads (owner);
CREATE INDEX threads_open ON threads (owner) WHERE run <> '';
CREATE INDEX threads_free ON threads (updated) WHERE run = '';

CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    thread TEXT NOT NULL,
    agent TEXT NOT NULL,
    principal TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    holder TEXT NOT NULL,
    due INTEGER,
    seq INTEGER NOT NULL,
    said INTEGER NOT NULL,
    format INTEGER NOT NULL,
    why TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_key ON runs (principal, key) WHERE key <> '';
CREATE INDEX runs_thread ON runs (thread);
CREATE INDEX runs_created ON runs (created);
CREATE INDEX runs_principal ON runs (principal, created);
CREATE INDEX runs_ready ON runs (updated) WHERE state = 'ready';
CREATE INDEX runs_due ON runs (due) WHERE state = 'waiting' AND due IS NOT NULL;
CREATE INDEX runs_holder ON runs (holder) WHERE holder <> '';

CREATE TABLE log (
    row INTEGER PRIMARY KEY,
    thread TEXT NOT NULL,
    run TEXT NOT NULL,
    version INTEGER NOT NULL,
    count INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    said INTEGER NOT NULL,
    toolset TEXT NOT NULL,
    format INTEGER NOT NULL,
    at INTEGER NOT NULL,
    messages BLOB NOT NULL,
    updates BLOB NOT NULL,
    events BLOB NOT NULL
);
-- A commit that told nothing has the number of the one before it, also if that was another run's.
CREATE UNIQUE INDEX log_place ON log (thread, seq, run, version);
CREATE INDEX log_toolset ON log (toolset) WHERE toolset <> '';

CREATE TABLE calls (
    id TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    thread TEXT NOT NULL,
    principal TEXT NOT NULL,
    tool TEXT NOT NULL,
    state TEXT NOT NULL,
    awaited INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    record BLOB NOT NULL
);
CREATE INDEX calls_run ON calls (run);
CREATE INDEX calls_awaited ON calls (principal, updated, id) WHERE awaited = 1;

CREATE TABLE snapshots (
    run TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body BLOB NOT NULL
);

CREATE TABLE toolsets (
    id TEXT PRIMARY KEY,
    body BLOB NOT NULL
);

CREATE TABLE memories (
    row INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    pin TEXT NOT NULL,
    arguments_hash TEXT NOT NULL,
    allow INTEGER NOT NULL,
    at INTEGER NOT NULL
);
CREATE UNIQUE INDEX memories_place ON memories (principal, pin, arguments_hash);

CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    build TEXT NOT NULL,
    formats INTEGER NOT NULL,
    started INTEGER NOT NULL,
    beat INTEGER NOT NULL,
    expires INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE pieces (
    run TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, epoch, turn, offset)
) WITHOUT ROWID;

-- Who is there now; none of it is kept for later.

CREATE TABLE clients (
    connection TEXT PRIMARY KEY,
    client TEXT NOT NULL,
    principal TEXT NOT NULL,
    thread TEXT NOT NULL,
    worker TEXT NOT NULL,
    offers TEXT NOT NULL,
    tools BLOB NOT NULL,
    closing INTEGER NOT NULL,
    since INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX clients_place ON clients (principal, thread);
CREATE INDEX clients_worker ON clients (worker);

CREATE TABLE progress (
    call TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX progress_run ON progress (run);
