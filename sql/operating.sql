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
    OUT failed_tables integer)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_worker_passes';
COMMENT ON FUNCTION idem_worker_passes() IS
    'when the background worker last began a pass over this database, when it last came through, and with how many tables; no row = not since the server started';

CREATE FUNCTION idem_worker_progress(
    OUT dedup        regclass,
    OUT phase        text,
    OUT blocks_done  bigint,
    OUT blocks_total bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_worker_progress';
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
