-- The tables, what a statement carries them in, and the one function that writes.
--
-- `farhand.` stands for the schema of the store. Ids compare as bytes (collate "C"). Every reader and writer takes locks
-- in one order: runs by id, then their calls, then threads by id.

create table farhand.meta (
    version integer not null,
    store text not null
);

create table farhand.threads (
    id text collate "C" primary key,
    owner text not null,
    name text not null,
    run text not null,
    seq bigint not null,
    said bigint not null,
    scene text not null,
    created bigint not null,
    updated bigint not null
) with (fillfactor = 85);

create index threads_owner on farhand.threads (owner);
create index threads_open on farhand.threads (owner) where run <> '';
create index threads_idle on farhand.threads (updated) where run = '';

create table farhand.runs (
    id text collate "C" primary key,
    thread text collate "C" not null,
    agent text not null,
    principal text collate "C" not null,
    key text collate "C" not null,
    request text not null,
    state text collate "C" not null,
    version bigint not null,
    epoch bigint not null,
    holder text collate "C" not null,
    due bigint,
    seq bigint not null,
    said bigint not null,
    format integer not null,
    why text not null,
    created bigint not null,
    updated bigint not null,
    -- In the order they were begun.
    number bigint generated always as identity,
    -- `updated` itself changes with every write: an index on it would keep rows from being updated in place.
    ready bigint generated always as (case when state = 'ready' then updated end) stored
) with (fillfactor = 70);

create unique index runs_key on farhand.runs (principal, key) where key <> '';
create index runs_thread on farhand.runs (thread);
create index runs_ready on farhand.runs (ready) where ready is not null;
create index runs_due on farhand.runs (due) where state = 'waiting' and due is not null;
create index runs_holder on farhand.runs (holder) where holder <> '';
create index runs_principal on farhand.runs (principal, number);

create table farhand.log (
    thread text collate "C" not null,
    run text collate "C" not null,
    version bigint not null,
    count integer not null,
    seq bigint not null,
    said bigint not null,
    events bytea not null,
    updates bytea not null,
    messages bytea not null,
    toolset text collate "C" not null,
    format integer not null,
    at bigint not null,
    -- A commit that told nothing has the number of the one before it, also if that was another run's.
    primary key (thread, seq, run, version)
) with (toast_tuple_target = 4080);

create index log_toolset on farhand.log (toolset) where toolset <> '';

create table farhand.calls (
    id text collate "C" primary key,
    run text collate "C" not null,
    thread text collate "C" not null,
    principal text collate "C" not null,
    tool text not null,
    state text not null,
    awaited boolean not null,
    record bytea not null,
    updated bigint not null,
    number bigint generated always as identity
) with (fillfactor = 70);

create index calls_run on farhand.calls (run);
create index calls_awaited on farhand.calls (principal, number) where awaited;

create table farhand.snapshots (
    run text collate "C" primary key,
    version bigint not null,
    body bytea not null
) with (fillfactor = 60, toast_tuple_target = 4080);

create table farhand.toolsets (
    id text collate "C" primary key,
    body bytea not null
);

create table farhand.memories (
    principal text collate "C" not null,
    pin text collate "C" not null,
    arguments_hash text collate "C" not null,
    allow boolean not null,
    at bigint not null,
    primary key (principal, pin, arguments_hash)
);

create table farhand.workers (
    id text collate "C" primary key,
    host text not null,
    build text not null,
    formats integer not null,
    started bigint not null,
    beat bigint not null,
    expires bigint not null
) with (fillfactor = 50);

create table farhand.pieces (
    run text collate "C" not null,
    epoch bigint not null,
    turn bigint not null,
    "offset" bigint not null,
    text text not null,
    primary key (run, epoch, turn, "offset")
);

-- Who is there now; none of it is kept for later.

create table farhand.clients (
    connection text collate "C" primary key,
    client text not null,
    principal text collate "C" not null,
    thread text collate "C" not null,
    worker text collate "C" not null,
    offers text[] not null,
    tools bytea not null,
    closing boolean not null,
    since bigint not null
) with (fillfactor = 70);

create index clients_place on farhand.clients (principal, thread);
create index clients_worker on farhand.clients (worker);

create table farhand.progress (
    call text collate "C" primary key,
    run text collate "C" not null,
    name text not null,
    value bytea not null,
    at bigint not null
) with (fillfactor = 50);

create index progress_run on farhand.progress (run);

-- What a statement carries. Apart from the tables, so that a table may get a column under the feet of an older build.

create type farhand.thread_1 as (
    id text, owner text, name text, run text, seq bigint, said bigint, scene text, created bigint, updated bigint
);
create type farhand.run_1 as (
    id text, thread text, agent text, principal text, key text, request text, state text, version bigint, epoch bigint,
    holder text, due bigint, seq bigint, said bigint, format integer, why text, created bigint, updated bigint
);
create type farhand.log_1 as (
    thread text, run text, version bigint, count integer, seq bigint, said bigint, events bytea, updates bytea,
    messages bytea, toolset text, format integer, at bigint
);
create type farhand.call_1 as (
    id text, run text, thread text, principal text, tool text, state text, awaited boolean, record bytea, updated bigint
);
create type farhand.snapshot_1 as (run text, version bigint, body bytea);
create type farhand.toolset_1 as (run text, id text, body bytea);
create type farhand.memory_1 as (
    run text, principal text, pin text, arguments_hash text, allow boolean, at bigint
);

-- A group of writes, at most one of a thread, in one round trip and one commit. Gives the runs that were as expected;
-- of the others nothing is written. Who loses a race that no lock could prevent gets an error and asks again.
--
-- Its plans are made once, maybe while the tables are nearly empty, and must be right when they are not. So sequential
-- scans are ruled out, and rows are looked up with `id = any(array[x])` or in a subquery: unlike a join on `id = x`
-- these are never answered by reading a whole index in order. `lateral (... for update)` locks in the order of what it
-- is joined to.
create function farhand.write_1(
    changed farhand.run_1[],
    was_version bigint[],
    was_epoch bigint[],
    begun farhand.run_1[],
    begins farhand.thread_1[],
    ended text[],
    scenes text[],
    touched text[],
    entries farhand.log_1[],
    called farhand.call_1[],
    shots farhand.snapshot_1[],
    brought farhand.toolset_1[],
    decided farhand.memory_1[],
    streamed text[]
) returns text[] language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off
as $$
declare
    good text[] := '{}';
    fresh text[];
    known bigint;
    written bigint;
begin
    if cardinality(changed) > 1 then
        perform from (select c.id from unnest(changed) c order by c.id collate "C") n
        cross join lateral (select from farhand.runs r where r.id = any(array[n.id]) for no key update) locked;
    end if;
    if cardinality(changed) > 0 then
        with done as (
            update farhand.runs r set
                thread = n.thread, agent = n.agent, principal = n.principal, key = n.key, request = n.request,
                state = n.state, version = n.version, epoch = n.epoch, holder = n.holder, due = n.due, seq = n.seq,
                said = n.said, format = n.format, why = n.why, created = n.created, updated = n.updated
            from rows from (unnest(was_version), unnest(was_epoch), unnest(changed)) as n(at_version, at_epoch)
            where r.id = any(array[n.id]) and r.version = n.at_version and r.epoch = n.at_epoch
            returning r.id
        )
        select coalesce(array_agg(done.id), '{}') into good from done;
    end if;
    if cardinality(touched) > 0 then
        perform from (select c.id from unnest(touched) c(id) order by c.id collate "C") n
        cross join lateral (select from farhand.threads t where t.id = any(array[n.id]) for no key update) locked;
    end if;
    if cardinality(begun) > 0 then
        select coalesce(array_agg(n.id), '{}') into fresh
        from unnest(begun) n join unnest(begins) b on b.id = n.thread
        left join farhand.threads t on t.id = any(array[b.id])
        where case when t.id is null then b.seq = 0 else t.run = '' and t.seq = b.seq end
            and (select count(*) from farhand.runs r where r.id = n.id) = 0
            and (
                select count(*) from farhand.runs r where r.principal = n.principal and r.key = n.key and r.key <> ''
            ) = 0;
        good := good || fresh;
    end if;

    if cardinality(good) < cardinality(changed) + cardinality(begun) then
        changed := array(select n from unnest(changed) n where n.id = any(good));
        begun := array(select n from unnest(begun) n where n.id = any(good));
        begins := array(select b from unnest(begins) b where b.id in (select n.thread from unnest(begun) n));
        ended := array(select e from unnest(ended) e where e = any(good));
        entries := array(select l from unnest(entries) l where l.run = any(good));
        called := array(select c from unnest(called) c where c.run = any(good));
        shots := array(select s from unnest(shots) s where s.run = any(good));
        brought := array(select s from unnest(brought) s where s.run = any(good));
        decided := array(select m from unnest(decided) m where m.run = any(good));
        streamed := array(select s from unnest(streamed) s where s = any(good));
        if cardinality(good) = 0 then
            return good;
        end if;
    end if;

    if cardinality(begun) > 0 then
        insert into farhand.runs (
            id, thread, agent, principal, key, request, state, version, epoch, holder, due, seq, said, format, why,
            created, updated
        ) select n.* from unnest(begun) n order by n.principal, n.key, n.id;
        update farhand.threads t set
            owner = b.owner, name = b.name, run = b.run, seq = b.seq, said = b.said, created = b.created,
            updated = b.updated
        from unnest(begins) b where t.id = any(array[b.id]) and t.run = '' and t.seq = b.seq;
        get diagnostics known = row_count;
        insert into farhand.threads (id, owner, name, run, seq, said, scene, created, updated)
        select b.* from unnest(begins) b
        where (select count(*) from farhand.threads t where t.id = b.id) = 0
        order by b.id;
        get diagnostics written = row_count;
        if known + written < cardinality(begins) then
            raise exception 'a new thread has got another run since the look at it' using errcode = '40001';
        end if;
    end if;
    if cardinality(ended) > 0 then
        update farhand.threads t set
            run = '', seq = n.seq, said = n.said, scene = case when n.id = any(scenes) then n.id else '' end,
            updated = n.updated
        from unnest(changed || begun) n where n.id = any(ended) and t.id = any(array[n.thread]);
    end if;

    insert into farhand.log (
        thread, run, version, count, seq, said, events, updates, messages, toolset, format, at
    ) select l.* from unnest(entries) l;
    if cardinality(called) > 0 then
        insert into farhand.calls (id, run, thread, principal, tool, state, awaited, record, updated)
        select c.* from unnest(called) c
        on conflict (id) do update set
            thread = excluded.thread, principal = excluded.principal, tool = excluded.tool, state = excluded.state,
            awaited = excluded.awaited, record = excluded.record, updated = excluded.updated
        where calls.run = excluded.run;
        get diagnostics written = row_count;
        if written < cardinality(called) then
            raise exception 'a call of this id belongs to another run' using errcode = 'integrity_constraint_violation';
        end if;
    end if;
    if cardinality(shots) > 0 then
        insert into farhand.snapshots (run, version, body) select s.* from unnest(shots) s
        on conflict (run) do update set version = excluded.version, body = excluded.body;
    end if;
    if cardinality(brought) > 0 then
        insert into farhand.toolsets (id, body) select s.id, s.body from unnest(brought) s order by s.id
        on conflict (id) do nothing;
        -- Whoever is about to remove one of them has to wait, and then finds it in use.
        perform from (select s.id from unnest(brought) s order by s.id collate "C") n
        cross join lateral (select from farhand.toolsets t where t.id = any(array[n.id]) for key share) locked;
    end if;
    if cardinality(decided) > 0 then
        insert into farhand.memories (principal, pin, arguments_hash, allow, at)
        select distinct on (m.principal, m.pin, m.arguments_hash)
            m.principal, m.pin, m.arguments_hash, m.allow, m.at
        from unnest(decided) m order by m.principal, m.pin, m.arguments_hash, m.at desc
        on conflict (principal, pin, arguments_hash) do update set allow = excluded.allow, at = excluded.at;
    end if;
    if cardinality(streamed) > 0 then
        delete from farhand.pieces p where p.run = any(streamed);
    end if;
    return good;
end
$$;
