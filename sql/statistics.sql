-- Statistics: what calls were answered, how late duplicates come, and which windows that asks for.

CREATE FUNCTION idem_stat_rows(
    OUT dedup              regclass,
    OUT handler            text,
    OUT acquired           bigint,
    OUT retaken            bigint,
    OUT duplicate          bigint,
    OUT busy               bigint,
    OUT backoff            bigint,
    OUT dead               bigint,
    OUT conflict           bigint,
    OUT stale              bigint,
    OUT bypassed           bigint,
    OUT committed          bigint,
    OUT failed             bigint,
    OUT given_back         bigint,
    OUT lease_lost         bigint,
    OUT left_open          bigint,
    OUT late               bigint,
    OUT late_by_chance     double precision,
    OUT stale_age_max      interval,
    OUT last_duplicate_at  timestamptz,
    OUT last_conflict_at   timestamptz,
    OUT duplicate_age_p50  interval,
    OUT duplicate_age_p99  interval,
    OUT duplicate_age_max  interval,
    OUT work_p50           interval,
    OUT work_p99           interval,
    OUT work_max           interval,
    OUT stats_reset        timestamptz)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE ROWS 20 AS 'MODULE_PATHNAME', 'idem_stat_rows';
COMMENT ON FUNCTION idem_stat_rows() IS 'the rows of the view idem_stat';

CREATE VIEW idem_stat AS SELECT * FROM idem_stat_rows();
COMMENT ON VIEW idem_stat IS
    'what calls were answered, by dedup table and handler, rolled back or not; no row without preloading; rows of one''s own tables, or of all with pg_read_all_stats';
COMMENT ON COLUMN idem_stat.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass; null = all handlers beyond idem.stat_handlers';
COMMENT ON COLUMN idem_stat.handler IS 'the handler; null = all handlers beyond idem.stat_handlers';
COMMENT ON COLUMN idem_stat.acquired IS 'events seen for the first time, received ones too';
COMMENT ON COLUMN idem_stat.retaken IS 'later claims on known events: received before, given back, retry due, lease run out';
COMMENT ON COLUMN idem_stat.duplicate IS 'redeliveries of events that are done';
COMMENT ON COLUMN idem_stat.busy IS 'answers that somebody else is at the event';
COMMENT ON COLUMN idem_stat.backoff IS 'answers that a retry is not due yet';
COMMENT ON COLUMN idem_stat.dead IS 'answers that the event''s tries are used up';
COMMENT ON COLUMN idem_stat.conflict IS 'answers that the fingerprint differs: a sender''s fault, or an attack';
COMMENT ON COLUMN idem_stat.stale IS 'answers that the event is older than what is remembered';
COMMENT ON COLUMN idem_stat.bypassed IS 'claims whose work was done unprotected, as the store was not available';
COMMENT ON COLUMN idem_stat.committed IS 'events settled as done, accepted ones too';
COMMENT ON COLUMN idem_stat.failed IS 'releases with an error';
COMMENT ON COLUMN idem_stat.given_back IS 'releases without one';
COMMENT ON COLUMN idem_stat.lease_lost IS 'settlings and heartbeats refused with ID001';
COMMENT ON COLUMN idem_stat.left_open IS 'claims whose transaction was refused with ID003';
COMMENT ON COLUMN idem_stat.late IS 'events taken for new whose key an emptied generation seems to have held: probably done and forgotten, so the cold window is too short';
COMMENT ON COLUMN idem_stat.late_by_chance IS 'how many of the late ones are to be expected by chance, as a filter errs';
COMMENT ON COLUMN idem_stat.stale_age_max IS 'how old the oldest of the stale ones was, by its sender''s clock: these came too late, too';
COMMENT ON COLUMN idem_stat.last_duplicate_at IS 'when the last duplicate came';
COMMENT ON COLUMN idem_stat.last_conflict_at IS 'when the last conflict came';
COMMENT ON COLUMN idem_stat.duplicate_age_p50 IS 'how old the event was at half of the redeliveries, at most';
COMMENT ON COLUMN idem_stat.duplicate_age_p99 IS 'the same for 99 of 100';
COMMENT ON COLUMN idem_stat.duplicate_age_max IS 'the same for all';
COMMENT ON COLUMN idem_stat.work_p50 IS 'how long half of the claims took until they were settled, at most';
COMMENT ON COLUMN idem_stat.work_p99 IS 'the same for 99 of 100';
COMMENT ON COLUMN idem_stat.work_max IS 'the same for all';
COMMENT ON COLUMN idem_stat.stats_reset IS 'since when it is counted';

GRANT SELECT ON idem_stat TO PUBLIC;

CREATE FUNCTION idem_stat_reset(dedup regclass DEFAULT NULL)
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_stat_reset';
COMMENT ON FUNCTION idem_stat_reset(regclass) IS
    'lets the statistics of a dedup table, or of all that the caller owns, begin anew; owner only';

CREATE FUNCTION idem_window_advice(
    dedup                    regclass,
    handler                  text DEFAULT NULL,
    OUT of_handler           text,
    OUT events               bigint,
    OUT redelivered          bigint,
    OUT redelivered_share    double precision,
    OUT span_p50             interval,
    OUT span_p90             interval,
    OUT span_p99             interval,
    OUT span_max             interval,
    OUT span_p99_low         interval,
    OUT span_p99_high        interval,
    OUT span_p99_of_all      interval,
    OUT work_p50             interval,
    OUT work_p90             interval,
    OUT work_p99             interval,
    OUT work_max             interval,
    OUT hot_window           interval,
    OUT cold_window          interval,
    OUT advised_hot_window   interval,
    OUT advised_retry_span   interval,
    OUT advised_cold_window  interval,
    OUT why                  text)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE ROWS 10 AS 'MODULE_PATHNAME', 'idem_window_advice';
COMMENT ON FUNCTION idem_window_advice(regclass, text) IS
    'how long after its first delivery an event was last delivered, how long work took, and which windows that asks for; without a handler a row for each, and one (of_handler null) for all of them; owner or pg_read_all_stats';

CREATE FUNCTION idem_unsettled_rows(
    OUT dedup    regclass,
    OUT handler  text,
    OUT state    idem_state,
    OUT events   bigint,
    OUT oldest   timestamptz,
    OUT next_due timestamptz)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 20 AS 'MODULE_PATHNAME', 'idem_unsettled_rows';
COMMENT ON FUNCTION idem_unsettled_rows() IS 'the rows of the view idem_unsettled';

CREATE VIEW idem_unsettled AS SELECT * FROM idem_unsettled_rows();
COMMENT ON VIEW idem_unsettled IS
    'events that are not settled, by dedup table, handler and state: dead ones wait for somebody to decide; rows of tables that one owns or may SELECT, or of all with pg_read_all_stats';
COMMENT ON COLUMN idem_unsettled.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass';
COMMENT ON COLUMN idem_unsettled.handler IS 'the handler; null, and so is all behind it = somebody has locked a partition';
COMMENT ON COLUMN idem_unsettled.state IS 'pending, processing, failed or dead';
COMMENT ON COLUMN idem_unsettled.events IS 'how many there are';
COMMENT ON COLUMN idem_unsettled.oldest IS 'when the first of them was first seen';
COMMENT ON COLUMN idem_unsettled.next_due IS 'when the next of them is due; infinity = never by itself';

GRANT SELECT ON idem_unsettled TO PUBLIC;
