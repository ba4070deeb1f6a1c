"""Every statement of the store in PostgreSQL but the ones that make its tables. Constant texts: they stay prepared.

Scans compare with a number that was passed in: with a volatile `clock_timestamp()` no index would be used as a range.
"""

import re

from farhand.stores.base import CallRow, LogRow, MemoryRow, PieceRow, RunRow, ThreadRow, WorkerRow
from farhand.stores.presence import ClientRow, ProgressRow

_ROWS = (ThreadRow, RunRow, LogRow, CallRow, MemoryRow, WorkerRow, PieceRow, ClientRow, ProgressRow)


# What is said of connections is not worth waiting for the disk: when the power has failed, nobody is connected. Calls
# are taken up in commits that come later, and those take what was before them along.
_HASTE = "haste as materialized (select set_config('synchronous_commit', 'off', true))"


def _sql(query: str) -> str:
    """With the columns of a row where its name stands in braces, also behind the name of a table; and with haste."""
    query = query.replace("{haste}", _HASTE)
    for row in _ROWS:
        for table in re.findall(rf"\{{(\w+\.)?{row.__name__}\}}", query):
            columns = ", ".join(f'{table}"{field}"' for field in row.__struct_fields__)
            query = query.replace(f"{{{table}{row.__name__}}}", columns)
    return query


TIME = "select (extract(epoch from clock_timestamp()) * 1000)::bigint"

# Runs

WRITE = "select farhand.write_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"

# One statement is one consistent look, and one round trip.
LOAD = _sql("""
select
    row({r.RunRow})::farhand.run_1 as run,
    row({t.ThreadRow})::farhand.thread_1 as thread,
    coalesce(s.body, '') as snapshot,
    array(
        select row({l.LogRow})::farhand.log_1 from farhand.log l
        where l.thread = r.thread and l.run = r.id and l.version > coalesce(s.version, 0)
        order by l.version
    ) as tail,
    array(
        select l.messages from farhand.log l
        where l.thread = r.thread and l.messages <> '' and l.said <= r.said
        order by l.said
    ) as messages
from farhand.runs r
join farhand.threads t on t.id = r.thread
left join farhand.snapshots s on s.run = r.id
where r.id = $1
""")

RUN_OF = "select run from farhand.calls where id = $1"
RUN_UNDER = _sql("select {RunRow} from farhand.runs where principal = $1 and key = $2 and key <> ''")
THREAD = _sql("select {ThreadRow} from farhand.threads where id = $1")
MESSAGES = "select array(select messages from farhand.log where thread = $1 and messages <> '' order by said)"
TOOLSET = "select body from farhand.toolsets where id = $1"
LOG = _sql("""
select {LogRow} from farhand.log
where thread = $1 and seq > $2 and updates <> '' order by seq, version limit $3
""")
STANDING = _sql("""
select row({c.CallRow})::farhand.call_1 as call, r.seq
from farhand.calls c join farhand.runs r on r.id = c.run where c.id = $1
""")
AWAITED = "select count(*) from farhand.calls where awaited"
WAITING = _sql("select {CallRow} from farhand.calls where awaited and principal = $1 order by number limit $2")
# Whatever waits in a thread belongs to its open run.
WAITING_IN = _sql("""
select {CallRow} from farhand.calls
where run = any(array(select run from farhand.threads where id = $3)) and awaited and principal = $1
order by number limit $2
""")
RUNS = _sql("""
select {RunRow} from farhand.runs
where ($1 = '' or principal = $1) and ($2 = '' or state = $2) order by number desc limit $3
""")
MEMORIES = _sql("select {MemoryRow} from farhand.memories where principal = $1 order by at, pin, arguments_hash")
FORGET = "delete from farhand.memories where principal = $1"

# Who works on what

ENTER = _sql("""
insert into farhand.workers ({WorkerRow}) values ($1, $2, $3, $4, $5, $6, $7)
on conflict (id) do update set
    host = excluded.host, build = excluded.build, formats = excluded.formats, started = excluded.started,
    beat = excluded.beat, expires = excluded.expires
""")
BEAT = "update farhand.workers set beat = $2, expires = $3 where id = $1 returning true"
LEAVE = "delete from farhand.workers where id = $1"
EXPIRE = """
delete from farhand.workers where id in (select id from farhand.workers where expires < $1 for update skip locked)
"""
FREE = """
with mine as (select id from farhand.runs where holder <> '' and holder = $1 order by id for no key update),
freed as (
    update farhand.runs r set state = 'ready', holder = '' from mine where r.id = mine.id and r.holder = $1 returning 1
)
select count(*) from freed
"""
# A run that is being written just now is left for the next time.
FREE_LOST = """
with lost as (
    select id from farhand.runs
    where holder <> '' and holder = any(array(
        select distinct r.holder from farhand.runs r
        where r.holder <> '' and not exists (select from farhand.workers w where w.id = r.holder)
    ))
    order by id for no key update skip locked
),
freed as (update farhand.runs r set state = 'ready', holder = '' from lost where r.id = lost.id returning 1)
select count(*) from freed
"""
CLAIM = """
with at_once as materialized (
    select id, updated, true as lost from farhand.runs
    where ready is not null and agent = any($2) and format <= $5
    order by ready limit $4 for no key update skip locked
),
overdue as materialized (
    select id, updated, false as lost from farhand.runs
    where state = 'waiting' and due is not null and due <= $3 and agent = any($2) and format <= $5
    order by due limit $4 for no key update skip locked
),
oldest as materialized (
    select id, updated, lost from (table at_once union all table overdue) found order by updated limit $4
),
taken as (
    update farhand.runs r set state = 'running', holder = $1, epoch = r.epoch + 1 from oldest where r.id = oldest.id
    returning r.id
)
select oldest.id, oldest.lost from oldest join taken on taken.id = oldest.id order by oldest.updated
"""
HELD = "select id, version, epoch from farhand.runs where holder <> '' and holder = $1"
REFUSE = """
update farhand.runs set state = 'refused', holder = '', due = null, why = $4
where id = $1 and version = $2 and epoch = $3 returning true
"""

READMIT = """
update farhand.runs set state = 'ready', why = ''
where id = $1 and version = $2 and epoch = $3 and state = 'refused' returning true
"""

# The reply that is under way

STREAM = _sql("""
insert into farhand.pieces ({PieceRow})
select p.* from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) p(run, epoch, turn, at, text)
join farhand.runs r on r.id = p.run and r.epoch = p.epoch
on conflict do nothing
returning (select thread from farhand.runs where id = run) as thread, run
""")
STREAMED = _sql('select {PieceRow} from farhand.pieces where run = $1 order by epoch, turn, "offset"')

# Who is there

ATTACH = _sql("""
with {haste}
insert into farhand.clients ({ClientRow}) select $1, $2, $3, $4, $5, $6, $7, $8, $9 from haste
on conflict (connection) do update set
    client = excluded.client, principal = excluded.principal, thread = excluded.thread, worker = excluded.worker,
    offers = excluded.offers, tools = excluded.tools, closing = excluded.closing, since = excluded.since
""")
DETACH = _sql("with {haste} delete from farhand.clients using haste where connection = $1")
CLIENTS = _sql("""
select {c.ClientRow} from farhand.clients c
where c.principal = $1 and c.thread in ('', $2) and not c.closing
    and exists (select from farhand.workers w where w.id = c.worker)
order by c.since, c.connection
""")
ORPHANS = _sql("""
with lost as (
    select connection from farhand.clients
    where worker = any(array(
        select distinct c.worker from farhand.clients c
        where not exists (select from farhand.workers w where w.id = c.worker)
    )) or (closing and worker = $1)
    order by since, connection limit $2 for no key update skip locked
)
update farhand.clients c set worker = $1, closing = true from lost where c.connection = lost.connection
returning {c.ClientRow}
""")
TELL = _sql("""
with {haste},
written as (
    insert into farhand.progress ({ProgressRow})
    select $1, $2, $3, $4, $5 from farhand.calls, haste where id = $1 and record <> ''
    on conflict (call) do update set name = excluded.name, value = excluded.value, at = excluded.at
    returning call
)
select c.thread, c.run from farhand.calls c join written on written.call = c.id
""")
TOLD = _sql("""
select {p.ProgressRow} from farhand.progress p join farhand.calls c on c.id = p.call
where p.run = $1 and c.record <> '' and p.at >= c.updated order by p.call
""")
FORGET_PROGRESS = """
delete from farhand.progress where call in (
    select p.call from farhand.progress p
    where not exists (select from farhand.calls c where c.id = p.call and c.record <> '')
    for update skip locked
)
"""

# Housekeeping. Runs are locked before their threads, as everywhere.

OLD = "select array(select id from farhand.threads where run = '' and updated < $1 order by updated limit $2)"
LOCK_RUNS_OF = "select from farhand.runs where thread = any($1) order by id for update"
LOCK_OLD = """
select id from farhand.threads where id = any($1) and run = '' and updated < $2 order by id for update
"""
PRUNE_PIECES = "delete from farhand.pieces where run in (select id from farhand.runs where thread = any($1))"
PRUNE_PROGRESS = "delete from farhand.progress where run in (select id from farhand.runs where thread = any($1))"
PRUNE_SNAPSHOTS = "delete from farhand.snapshots where run in (select id from farhand.runs where thread = any($1))"
PRUNE_CALLS = "delete from farhand.calls where run in (select id from farhand.runs where thread = any($1))"
PRUNE_LOG = """
with gone as (delete from farhand.log where thread = any($1) returning toolset)
select array(select distinct toolset from gone where toolset <> '')
"""
PRUNE_RUNS = "delete from farhand.runs where thread = any($1)"
PRUNE_THREADS = "delete from farhand.threads where id = any($1)"
# Locked first: who has just written one of them is waited for, and the next statement sees what he wrote.
LOCK_TOOLSETS = "select from farhand.toolsets where id = any($1) order by id for update"
PRUNE_TOOLSETS = """
delete from farhand.toolsets t where id = any($1) and not exists (
    select from farhand.log l where l.toolset = t.id and l.toolset <> ''
)
"""

HOLDINGS = """
select (select count(*) from farhand.threads where owner = $1) as threads,
       (select count(*) from farhand.threads where owner = $1 and run <> '') as runs,
       (select count(*) from farhand.calls where principal = $1 and awaited) as calls
"""
SUMMARY = """
select
    (select store from farhand.meta) as id,
    (select count(*) from farhand.threads) as threads,
    array(select row(state, count(*)) from farhand.runs group by state) as runs,
    (select count(*) from farhand.calls where record <> '') as open_calls,
    (select count(*) from farhand.calls where awaited) as awaited_calls
"""

# In an order in which they can be taken in.
EXPORT = {
    "toolsets": "select id, body from farhand.toolsets order by id",
    "threads": _sql("select {ThreadRow} from farhand.threads order by id"),
    "runs": _sql("select {RunRow} from farhand.runs order by number"),
    "log": _sql("select {LogRow} from farhand.log order by thread, seq, said, version"),
    "calls": _sql("select {CallRow} from farhand.calls order by number"),
    "snapshots": "select run, version, body from farhand.snapshots order by run",
    "memories": _sql("select {MemoryRow} from farhand.memories order by principal, at, pin, arguments_hash"),
}
ALONE = "lock table farhand.threads, farhand.toolsets, farhand.memories in share row exclusive mode"
IS_EMPTY = """
select not exists (select from farhand.threads)
    and not exists (select from farhand.toolsets)
    and not exists (select from farhand.memories)
"""
