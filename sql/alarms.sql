-- Alarms: the one thing to look at. No row: all is well.

CREATE VIEW idem_alarms AS
WITH told AS (
    SELECT r.dedup, c.oldest_generation, c.current_generation, c.slots,
           (r.cold_window OPERATOR(pg_catalog./) GREATEST(c.slots OPERATOR(pg_catalog.-) 2, 1)::double precision) AS span,
           s.last_pass, s.in_the_way, s.full_since, s.last_error_at, s.droppable_at, n.opened_at,
           (SELECT pg_catalog.min(g.opened_at) FROM idem_generation g
            WHERE g.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid) AS first_opened_at,
           pg_catalog.clock_timestamp() AS now
    FROM idem_registry r
         JOIN idem_control c ON c.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
         JOIN idem_purge_status s ON s.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
         LEFT JOIN idem_generation n ON n.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
                                        AND n.generation OPERATOR(pg_catalog.=) c.current_generation
), ring AS (
    -- Whoever purges may come seldom where windows are long.
    SELECT t.*, GREATEST(interval '1 hour', t.span OPERATOR(pg_catalog./) 4::double precision) AS patience,
           COALESCE(t.in_the_way, 'nobody that can be seen now') AS holders
    FROM told t
)
SELECT 'critical' AS severity, r.dedup, 'pass_failed' AS alarm, r.last_error_at AS since,
       'The latest pass over the table failed.' AS what,
       'Read idem_purge_status.last_error and mend that; the next pass tries again.' AS what_to_do
FROM ring r WHERE r.last_error_at IS NOT NULL
UNION ALL
SELECT 'critical', r.dedup, 'ring_full', r.full_since,
       'The ring has no slot to go on to; events go on into the current generation, which grows.',
       pg_catalog.format('End what keeps the oldest generation or the next slot from being emptied: %s. Settle or resolve unsettled events.',
                         r.holders)
FROM ring r WHERE r.full_since IS NOT NULL
UNION ALL
SELECT 'critical', r.dedup, 'purge_overdue', r.droppable_at,
       'The oldest generation has expired and is not emptied.',
       pg_catalog.format('End what keeps it: %s. See that passes come (last one: %s).', r.holders,
                         COALESCE(r.last_pass::pg_catalog.text, 'none'))
FROM ring r
WHERE r.full_since IS NULL AND r.last_error_at IS NULL
  AND r.droppable_at OPERATOR(pg_catalog.+) r.patience OPERATOR(pg_catalog.<) r.now
UNION ALL
SELECT 'critical', r.dedup, 'turn_overdue', r.opened_at OPERATOR(pg_catalog.+) r.span,
       'The next generation should have been opened; the current one grows.',
       pg_catalog.format('End what keeps the table: %s. See that passes come (last one: %s).', r.holders,
                         COALESCE(r.last_pass::pg_catalog.text, 'none'))
FROM ring r
WHERE r.full_since IS NULL AND r.last_error_at IS NULL
  AND r.opened_at OPERATOR(pg_catalog.+) r.span OPERATOR(pg_catalog.+) r.patience OPERATOR(pg_catalog.<) r.now
  -- An idle table does not turn.
  AND CASE WHEN r.opened_at OPERATOR(pg_catalog.+) r.span OPERATOR(pg_catalog.<) r.now THEN
      (SELECT s.heap_bytes OPERATOR(pg_catalog.>) 0 FROM idem_slots(r.dedup) s
       WHERE s.slot OPERATOR(pg_catalog.=) pg_catalog.mod(r.current_generation, r.slots)) END
UNION ALL
SELECT 'warning', r.dedup, 'not_purged', COALESCE(r.last_pass, r.first_opened_at),
       CASE WHEN r.last_pass IS NULL THEN 'No pass has ever come to the table.'
            ELSE 'No pass has come to the table for a long time.' END,
       CASE WHEN r.in_the_way IS NOT NULL THEN pg_catalog.format('End what keeps passes from the table: %s.', r.in_the_way)
            WHEN idem_why_no_worker() IS NOT NULL THEN
                pg_catalog.format('No worker comes, as %s: change that, or see that CALL idem_purge() runs regularly as the table''s owner.',
                                  idem_why_no_worker())
            ELSE 'Look for "idem launcher" in pg_stat_activity and for idem in the server''s log; max_worker_processes may be too low.' END
FROM ring r
WHERE r.last_error_at IS NULL
  AND COALESCE(r.last_pass, r.first_opened_at) OPERATOR(pg_catalog.+) r.patience OPERATOR(pg_catalog.<) r.now
UNION ALL
SELECT 'critical', r.dedup, 'clock_behind', GREATEST(r.opened_at, r.last_pass),
       'The server''s clock is behind what is on record of the table.',
       'Set the clock right. If it is right now, it was ahead before: events were stamped with times that are still to come, and live as much longer.'
FROM ring r
WHERE GREATEST(r.opened_at, r.last_pass) OPERATOR(pg_catalog.>) (r.now OPERATOR(pg_catalog.+) interval '1 minute')
UNION ALL
SELECT 'warning', NULL::pg_catalog.regclass, 'clock_doubted', k.doubted_since,
       'The server''s clock has jumped; nothing is retired until it has held steady for idem.clock_patience.',
       'Set the clock right if it is wrong. CALL idem_purge() believes it at once.'
FROM idem_clock k WHERE k.doubted_since IS NOT NULL
UNION ALL
-- A call holds the gate for microseconds. Whoever is seen with it and has not gone on to another statement for long is stuck.
SELECT 'critical', NULL::pg_catalog.regclass, 'gate_held', a.state_change,
       pg_catalog.format('Process %s holds the gate (%s).', l.pid, l.mode),
       pg_catalog.format('Find out what it is at; SELECT pg_terminate_backend(%s) ends it.', l.pid)
FROM (SELECT g.pid, g.mode FROM pg_catalog.pg_locks g
      WHERE g.locktype OPERATOR(pg_catalog.=) 'relation' AND g.granted
        AND g.relation OPERATOR(pg_catalog.=) (SELECT idem_gate_relation())
        AND g.database OPERATOR(pg_catalog.=)
            (SELECT d.oid FROM pg_catalog.pg_database d
             WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())) l
     JOIN LATERAL pg_catalog.pg_stat_get_activity(l.pid) a ON true
WHERE a.state OPERATOR(pg_catalog.<>) 'active'
   OR a.state_change OPERATOR(pg_catalog.+) interval '1 minute' OPERATOR(pg_catalog.<) pg_catalog.clock_timestamp()
UNION ALL
SELECT 'warning', NULL::pg_catalog.regclass, 'unknown_database', NULL::pg_catalog.timestamptz,
       pg_catalog.format('idem.databases names "%s", and there is no such database.', u.name),
       'Correct idem.databases: only the databases that it lists are purged.'
FROM idem_unknown_databases() u (name);
COMMENT ON VIEW idem_alarms IS 'what somebody has to look at; no row = all is well';
COMMENT ON COLUMN idem_alarms.severity IS 'critical: purging does not do its work; warning: it will not do so for long';
COMMENT ON COLUMN idem_alarms.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass; null = all of this database';
COMMENT ON COLUMN idem_alarms.alarm IS 'the kind of alarm, as docs/alarms.md lists them';
COMMENT ON COLUMN idem_alarms.since IS 'since when; null = not known';
COMMENT ON COLUMN idem_alarms.what IS 'what is wrong';
COMMENT ON COLUMN idem_alarms.what_to_do IS 'what to do about it';

GRANT SELECT ON idem_alarms TO PUBLIC;
