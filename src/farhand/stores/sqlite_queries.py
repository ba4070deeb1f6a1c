"""The SQL of the SQLite store, by name. Columns are listed in the order of the rows' fields in `base`."""

BEGIN = "BEGIN IMMEDIATE"
LOOK = "BEGIN"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
CHANGES = "PRAGMA data_version"
CARE = "PRAGMA synchronous"

# A write.

THREAD_PLACE = "SELECT run, seq FROM threads WHERE id = ?"
INSERT_RUN = """
INSERT INTO runs (id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format,
                  why, created, updated)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
INSERT_THREAD = """
INSERT INTO threads (id, owner, name, run, seq, said, scene, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, name = excluded.name, run = excluded.run, seq = excluded.seq,
                               said = excluded.said, scene = excluded.scene, created = excluded.created,
                               updated = excluded.updated
"""
UPDATE_RUN = """
UPDATE runs SET state = ?, version = ?, epoch = ?, holder = ?, due = ?, seq = ?, said = ?, format = ?, why = ?,
                updated = ?
WHERE id = ? AND version = ? AND epoch = ?
"""
INSERT_LOG = """
INSERT INTO log (thread, run, version, count, seq, said, events, updates, messages, toolset, format, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PUT_CALL = """
INSERT INTO calls (id, run, thread, principal, tool, state, awaited, record, updated)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, awaited = excluded.awaited, record = excluded.record,
                               updated = excluded.updated
"""
PUT_SNAPSHOT = """
INSERT INTO snapshots (run, version, body) VALUES (?, ?, ?)
ON CONFLICT (run) DO UPDATE SET version = excluded.version, body = excluded.body
"""
PUT_TOOLSET = "INSERT INTO toolsets (id, body) VALUES (?, ?) ON CONFLICT DO NOTHING"
PUT_MEMORY = "INSERT OR REPLACE INTO memories (principal, pin, arguments_hash, allow, at) VALUES (?, ?, ?, ?, ?)"
END_THREAD = "UPDATE threads SET run = '', seq = ?, said = ?, scene = ?, updated = ? WHERE id = ?"
DELETE_PIECES = "DELETE FROM pieces WHERE run = ?"

# Reading.

RUN = """
SELECT id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why, created,
       updated
FROM runs WHERE id = ?
"""
RUN_UNDER = """
SELECT id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why, created,
       updated
FROM runs WHERE principal = ? AND key = ? AND key <> ''
"""
RUNS = """
SELECT id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why, created,
       updated
FROM runs WHERE ?1 IN ('', state) ORDER BY created DESC, id DESC LIMIT ?2
"""
RUNS_OF = """
SELECT id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why, created,
       updated
FROM runs WHERE principal = ?3 AND ?1 IN ('', state) ORDER BY created DESC, id DESC LIMIT ?2
"""
THREAD = "SELECT id, owner, name, run, seq, said, scene, created, updated FROM threads WHERE id = ?"
SNAPSHOT = "SELECT version, body FROM snapshots WHERE run = ?"
TAIL = """
SELECT thread, run, version, count, seq, said, events, updates, messages, toolset, format, at
FROM log WHERE thread = ? AND seq <= ? ORDER BY seq DESC, run DESC, version DESC
"""
MESSAGES = "SELECT messages FROM log WHERE thread = ? AND said <= ? AND length(messages) > 0 ORDER BY seq, said"
LOG = """
SELECT thread, run, version, count, seq, said, events, updates, messages, toolset, format, at
FROM log WHERE thread = ? AND seq > ? AND length(updates) > 0 ORDER BY seq LIMIT ?
"""
RUN_OF = "SELECT run FROM calls WHERE id = ?"
TOOLSET = "SELECT body FROM toolsets WHERE id = ?"
STANDING = """
SELECT c.id, c.run, c.thread, c.principal, c.tool, c.state, c.awaited, c.record, c.updated, r.seq
FROM calls c JOIN runs r ON r.id = c.run WHERE c.id = ?
"""
WAITING = """
SELECT id, run, thread, principal, tool, state, awaited, record, updated
FROM calls WHERE principal = ?1 AND awaited = 1 ORDER BY updated, id LIMIT ?2
"""
AWAITED = "SELECT count(*) FROM calls WHERE awaited = 1"
HOLDINGS = """
SELECT (SELECT count(*) FROM threads WHERE owner = ?1),
       (SELECT count(*) FROM threads WHERE owner = ?1 AND run <> ''),
       (SELECT count(*) FROM calls WHERE principal = ?1 AND awaited = 1)
"""
# Whatever waits in a thread belongs to its open run.
WAITING_IN = """
SELECT id, run, thread, principal, tool, state, awaited, record, updated
FROM calls WHERE run = (SELECT run FROM threads WHERE id = ?3) AND principal = ?1 AND +awaited = 1
ORDER BY updated, id LIMIT ?2
"""
MEMORIES = "SELECT principal, pin, arguments_hash, allow, at FROM memories WHERE principal = ? ORDER BY at, row"
STREAMED = "SELECT run, epoch, turn, offset, text FROM pieces WHERE run = ? ORDER BY epoch, turn, offset"
HELD = "SELECT id, version, epoch FROM runs WHERE holder = ? AND holder <> ''"
WORKERS = "SELECT id FROM workers"

# Who works on what.

FORGET = "DELETE FROM memories WHERE principal = ?"
ENTER = """
INSERT OR REPLACE INTO workers (id, host, build, formats, started, beat, expires) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
BEAT = "UPDATE workers SET beat = ?, expires = ? WHERE id = ?"
LEAVE = "DELETE FROM workers WHERE id = ?"
FREE = "UPDATE runs SET state = 'ready', holder = '' WHERE holder = ? AND holder <> ''"
EXPIRE = "DELETE FROM workers WHERE expires < ?"
FREE_LOST = """
UPDATE runs SET state = 'ready', holder = '' WHERE holder <> '' AND holder NOT IN (SELECT id FROM workers)
"""
READY = """
SELECT updated, id, state FROM runs
WHERE state = 'ready' AND format <= ? AND agent IN (SELECT value FROM json_each(?)) ORDER BY updated LIMIT ?
"""
DUE = """
SELECT due, id, state FROM runs
WHERE state = 'waiting' AND due IS NOT NULL AND due <= ? AND format <= ?
      AND agent IN (SELECT value FROM json_each(?)) ORDER BY due LIMIT ?
"""
TAKE_UP = "UPDATE runs SET state = 'running', holder = ?, epoch = epoch + 1 WHERE id = ? AND state = ?"
REFUSE = """
UPDATE runs SET state = 'refused', holder = '', due = NULL, why = ? WHERE id = ? AND version = ? AND epoch = ?
"""
READMIT = """
UPDATE runs SET state = 'ready', why = '' WHERE id = ? AND version = ? AND epoch = ? AND state = 'refused'
"""
RUN_AT = "SELECT thread FROM runs WHERE id = ? AND epoch = ?"
PUT_PIECE = "INSERT OR REPLACE INTO pieces (run, epoch, turn, offset, text) VALUES (?, ?, ?, ?, ?)"

# Who is there.

ATTACH = """
INSERT OR REPLACE INTO clients (connection, client, principal, thread, worker, offers, tools, closing, since)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
DETACH = "DELETE FROM clients WHERE connection = ?"
CLIENTS = """
SELECT connection, client, principal, thread, worker, offers, tools, closing, since
FROM clients
WHERE principal = ?1 AND thread IN ('', ?2) AND closing = 0 AND worker IN (SELECT id FROM workers)
ORDER BY since, connection
"""
ORPHANS = """
SELECT connection, client, principal, thread, worker, offers, tools, closing, since
FROM clients WHERE worker NOT IN (SELECT id FROM workers) OR (worker = ?1 AND closing = 1)
ORDER BY since, connection LIMIT ?2
"""
OPEN_CALL = "SELECT thread, run FROM calls WHERE id = ? AND length(record) > 0"
TELL = "INSERT OR REPLACE INTO progress (call, run, name, value, at) VALUES (?, ?, ?, ?, ?)"
TOLD = """
SELECT p.call, p.run, p.name, p.value, p.at
FROM progress p JOIN calls c ON c.id = p.call
WHERE p.run = ? AND length(c.record) > 0 AND p.at >= c.updated ORDER BY p.call
"""
FORGET_PROGRESS = """
DELETE FROM progress
WHERE NOT EXISTS (SELECT 1 FROM calls WHERE calls.id = progress.call AND length(calls.record) > 0)
"""

# Housekeeping.

COUNT_THREADS = "SELECT count(*) FROM threads"
COUNT_RUNS = "SELECT state, count(*) FROM runs GROUP BY state"
COUNT_CALLS = "SELECT count(*), coalesce(sum(awaited), 0) FROM calls WHERE length(record) > 0"
OLD = "SELECT id FROM threads WHERE run = '' AND updated < ? ORDER BY updated LIMIT ?"
TOOLSETS_OF = "SELECT DISTINCT toolset FROM log WHERE thread = ? AND toolset <> ''"
DELETE_THREAD = (
    "DELETE FROM snapshots WHERE run IN (SELECT id FROM runs WHERE thread = ?)",
    "DELETE FROM pieces WHERE run IN (SELECT id FROM runs WHERE thread = ?)",
    "DELETE FROM progress WHERE run IN (SELECT id FROM runs WHERE thread = ?)",
    "DELETE FROM calls WHERE run IN (SELECT id FROM runs WHERE thread = ?)",
    "DELETE FROM log WHERE thread = ?",
    "DELETE FROM runs WHERE thread = ?",
    "DELETE FROM threads WHERE id = ?",
)
DELETE_TOOLSET = """
DELETE FROM toolsets WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM log WHERE toolset = ?1 AND toolset <> '')
"""
EXPORT = {
    "toolsets": "SELECT id, body FROM toolsets",
    "threads": "SELECT id, owner, name, run, seq, said, scene, created, updated FROM threads ORDER BY id",
    "runs": """
        SELECT id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why,
               created, updated
        FROM runs ORDER BY created, id
    """,
    "log": """
        SELECT thread, run, version, count, seq, said, events, updates, messages, toolset, format, at
        FROM log ORDER BY row
    """,
    "calls": "SELECT id, run, thread, principal, tool, state, awaited, record, updated FROM calls ORDER BY rowid",
    "snapshots": "SELECT run, version, body FROM snapshots",
    "memories": "SELECT principal, pin, arguments_hash, allow, at FROM memories ORDER BY row",
}
FILLED = """
SELECT EXISTS (SELECT 1 FROM threads) OR EXISTS (SELECT 1 FROM toolsets) OR EXISTS (SELECT 1 FROM memories)
"""
"""Whether anything is in there that an export would hold."""

# The file.

TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
READ_META = "SELECT value FROM meta WHERE name = ?"
PUT_META = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)"
