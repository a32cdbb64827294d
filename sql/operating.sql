-- Operating: turning, purging, noticing writes by others, and what the worker tells.

CREATE FUNCTION idem_touch()
RETURNS trigger LANGUAGE C AS 'MODULE_PATHNAME', 'idem_touch';
COMMENT ON FUNCTION idem_touch() IS
    'trigger of each partition of a dedup table: tells idem that somebody else has written to it';

CREATE PROCEDURE idem_rotate(dedup regclass)
LANGUAGE C AS 'MODULE_PATHNAME', 'idem_rotate';
COMMENT ON PROCEDURE idem_rotate(regclass) IS
    'opens the next generation of a dedup table, and empties the oldest one where all of it has expired; owner only, outside a transaction block';

CREATE PROCEDURE idem_purge(dedup regclass DEFAULT NULL)
LANGUAGE C AS 'MODULE_PATHNAME', 'idem_purge';
COMMENT ON PROCEDURE idem_purge(regclass) IS
    'does what the worker does, for one dedup table or all that the caller owns: turns the ring where that is due, empties what has expired; outside a transaction block';

CREATE FUNCTION idem_worker_passes(
    OUT started_at    timestamptz,
    OUT finished_at   timestamptz,
    OUT tables        integer,
    OUT failed_tables integer,
    OUT took          interval)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE ROWS 1 AS 'MODULE_PATHNAME', 'idem_worker_passes';
COMMENT ON FUNCTION idem_worker_passes() IS
    'when the background worker last began a pass over this database, when it last came through, with how many tables, and how long that pass took; no row = not since the server started';

CREATE FUNCTION idem_worker_progress(
    OUT dedup        regclass,
    OUT phase        text,
    OUT blocks_done  bigint,
    OUT blocks_total bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE ROWS 1 AS 'MODULE_PATHNAME', 'idem_worker_progress';
COMMENT ON FUNCTION idem_worker_progress() IS
    'what the background worker is at in this database right now: retire, move, seal, turn or empty; no row = nothing';

CREATE FUNCTION idem_preloaded()
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_preloaded';
COMMENT ON FUNCTION idem_preloaded() IS
    'whether the server has loaded idem by shared_preload_libraries, so that there are a worker and filters';

CREATE FUNCTION idem_bypassed(dedup regclass)
RETURNS bigint LANGUAGE C VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_bypassed';
COMMENT ON FUNCTION idem_bypassed(regclass) IS
    'how many claims on a dedup table were answered bypassed since the server started; null = not counted, as idem is not preloaded';

CREATE FUNCTION idem_filter(
    dedup     regclass,
    OUT bytes bigint,
    OUT slots integer[])
RETURNS record LANGUAGE C VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_filter';
COMMENT ON FUNCTION idem_filter(regclass) IS
    'shared memory of a dedup table''s filter, and the slots that look-ups use it for; nulls = it has none';

CREATE FUNCTION idem_slots(
    dedup          regclass,
    OUT slot       smallint,
    OUT partition  regclass,
    OUT heap_bytes bigint,
    OUT bytes      bigint,
    OUT events     bigint)
RETURNS SETOF record LANGUAGE C VOLATILE STRICT PARALLEL SAFE ROWS 8 AS 'MODULE_PATHNAME', 'idem_slots';
COMMENT ON FUNCTION idem_slots(regclass) IS
    'partitions of a dedup table, their size without and with indexes, and how many events VACUUM or ANALYZE last counted; takes no lock';

CREATE FUNCTION idem_gate_relation()
RETURNS oid LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_gate_relation';
COMMENT ON FUNCTION idem_gate_relation() IS 'the number under which pg_locks.relation shows who holds the gate, or waits for it; there is no such relation';

CREATE FUNCTION idem_why_no_worker()
RETURNS text LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_why_no_worker';
COMMENT ON FUNCTION idem_why_no_worker() IS 'why no background worker purges this database; null = one does';

CREATE FUNCTION idem_unknown_databases()
RETURNS SETOF text LANGUAGE C VOLATILE PARALLEL SAFE ROWS 1 AS 'MODULE_PATHNAME', 'idem_unknown_databases';
COMMENT ON FUNCTION idem_unknown_databases() IS 'names in idem.databases of which there is no database';
