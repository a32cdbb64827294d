-- Views: what an operator looks at.

CREATE VIEW idem_policy AS
SELECT r.dedup, NULL::pg_catalog.text COLLATE "C" AS handler, r.mode, r.hot_window, r.cold_window, r.unresolved_window,
       r.max_attempts, r.backoff_base, r.backoff_cap, r.on_unavailable, r.check_stale,
       r.skip_dead, r.notify
FROM idem_registry r JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
UNION ALL
SELECT r.dedup, h.handler, COALESCE(h.mode, r.mode), COALESCE(h.hot_window, r.hot_window),
       COALESCE(h.cold_window, r.cold_window), COALESCE(h.unresolved_window, r.unresolved_window),
       COALESCE(h.max_attempts, r.max_attempts), COALESCE(h.backoff_base, r.backoff_base),
       COALESCE(h.backoff_cap, r.backoff_cap), COALESCE(h.on_unavailable, r.on_unavailable),
       COALESCE(h.check_stale, r.check_stale), COALESCE(h.skip_dead, r.skip_dead), COALESCE(h.notify, r.notify)
FROM idem_registry r
     JOIN idem_handler_policy h ON h.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.dedup;
COMMENT ON VIEW idem_policy IS 'the policy of each dedup table, and of each handler that has one of its own, with what it inherits';
COMMENT ON COLUMN idem_policy.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass';
COMMENT ON COLUMN idem_policy.handler IS 'the handler; null = all that have no row of their own';

CREATE VIEW idem_tables AS
SELECT r.dedup, r.mode, r.hot_window, r.cold_window, r.unresolved_window, c.slots,
       c.oldest_generation, c.current_generation, p.events, p.bytes,
       (idem_filter(r.dedup)).bytes AS filter_bytes, idem_bypassed(r.dedup) AS bypassed, idem_preloaded() AS preloaded
FROM idem_registry r
     JOIN idem_control c ON c.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     JOIN LATERAL (
         SELECT pg_catalog.sum(COALESCE(g.events, s.events))::bigint AS events, pg_catalog.sum(s.bytes)::bigint AS bytes
         FROM idem_slots(r.dedup) s
              LEFT JOIN idem_generation g
                  ON g.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
                     AND pg_catalog.mod(pg_catalog.mod(g.generation, c.slots) OPERATOR(pg_catalog.+) c.slots, c.slots)
                         OPERATOR(pg_catalog.=) s.slot
         ) p ON p.bytes IS NOT NULL;
COMMENT ON VIEW idem_tables IS 'dedup tables of this database';
COMMENT ON COLUMN idem_tables.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass';
COMMENT ON COLUMN idem_tables.events IS 'remembered events: those that were counted when their generation was sealed, and what VACUUM or ANALYZE last counted in the current one';
COMMENT ON COLUMN idem_tables.bytes IS 'size on disk, indexes included';
COMMENT ON COLUMN idem_tables.filter_bytes IS 'shared memory of its filter; null = it has none';
COMMENT ON COLUMN idem_tables.bypassed IS 'claims answered bypassed since the server started, rolled back or not; null = not counted';
COMMENT ON COLUMN idem_tables.preloaded IS 'whether a worker purges it, and it may have a filter; if not, CALL idem_purge() regularly';

CREATE VIEW idem_generations AS
SELECT g.dedup, g.generation, p.slot, p.partition, g.opened_at, g.sealed_at, g.scanned_at, g.events, g.unsettled,
       g.newest_expiry,
       CASE WHEN g.scanned_at IS NOT NULL THEN COALESCE(g.newest_expiry, g.scanned_at) END AS droppable_at,
       COALESCE(p.slot::integer OPERATOR(pg_catalog.=) ANY ((idem_filter(g.dedup)).slots), false) AS filter,
       p.bytes
FROM idem_generation g
     JOIN idem_control c ON c.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) g.dedup::pg_catalog.oid
     JOIN LATERAL idem_slots(g.dedup) p
         ON p.slot OPERATOR(pg_catalog.=)
            pg_catalog.mod(pg_catalog.mod(g.generation, c.slots) OPERATOR(pg_catalog.+) c.slots, c.slots)
ORDER BY g.dedup, g.generation;
COMMENT ON VIEW idem_generations IS 'generations in the rings of this database''s dedup tables, oldest first';
COMMENT ON COLUMN idem_generations.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass';
COMMENT ON COLUMN idem_generations.slot IS 'number of the partition which holds it';
COMMENT ON COLUMN idem_generations.partition IS 'the partition';
COMMENT ON COLUMN idem_generations.events IS 'events when it was last scanned; null = not yet, or current';
COMMENT ON COLUMN idem_generations.droppable_at IS 'when its last settled event expires, so that it can be emptied; null = not known yet';
COMMENT ON COLUMN idem_generations.filter IS 'whether look-ups of new events skip it by a filter';
COMMENT ON COLUMN idem_generations.bytes IS 'size on disk, indexes included';

-- Nothing here may lock a dedup table or a partition, or nobody could see who has. The server's locks are read once, and
-- only those that may be in the way of something.
CREATE VIEW idem_purge_status AS
WITH held AS MATERIALIZED (
    SELECT l.relation, l.mode, l.pid,
           -- A prepared transaction has no process, and locks its own number.
           CASE WHEN l.pid IS NULL THEN (
               SELECT x.gid
               FROM pg_catalog.pg_locks n
                    JOIN pg_catalog.pg_prepared_xacts x ON x.transaction OPERATOR(pg_catalog.=) n.transactionid
               WHERE n.pid IS NULL AND n.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction) END AS gid
    FROM pg_catalog.pg_locks l
    WHERE l.locktype OPERATOR(pg_catalog.=) 'relation' AND l.granted
      AND l.database OPERATOR(pg_catalog.=)
          (SELECT d.oid FROM pg_catalog.pg_database d
           WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
      AND (l.mode OPERATOR(pg_catalog.<>) ALL (ARRAY['AccessShareLock', 'RowShareLock'])
           OR EXISTS (SELECT FROM idem_purge_state f WHERE f.full_since IS NOT NULL))
), place AS (
    SELECT COALESCE(i.inhparent, h.relation) AS dedup,
           CASE WHEN i.inhrelid IS NOT NULL THEN
               pg_catalog."substring"(pg_catalog.pg_get_expr(k.relpartbound, 0), '[0-9]+')::bigint END AS slot,
           h.mode,
           CASE WHEN h.pid IS NOT NULL THEN pg_catalog.format('%s of process %s', h.mode, h.pid)
                ELSE pg_catalog.format('%s of prepared transaction "%s"', h.mode, h.gid) END AS holder
    FROM held h
         LEFT JOIN pg_catalog.pg_inherits i ON i.inhrelid OPERATOR(pg_catalog.=) h.relation
         LEFT JOIN pg_catalog.pg_class k ON k.oid OPERATOR(pg_catalog.=) i.inhrelid
    WHERE COALESCE(i.inhparent, h.relation) OPERATOR(pg_catalog.=) ANY (SELECT r.dedup::pg_catalog.oid FROM idem_registry r)
), oldest AS (
    SELECT c.dedup, g.generation,
           CASE WHEN g.scanned_at IS NOT NULL THEN COALESCE(g.newest_expiry, g.scanned_at) END AS droppable_at
    FROM idem_control c
         JOIN idem_generation g ON g.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) c.dedup::pg_catalog.oid
                                   AND g.generation OPERATOR(pg_catalog.=) c.oldest_generation
    WHERE c.oldest_generation OPERATOR(pg_catalog.<) c.current_generation
), way AS (
    SELECT p.dedup, pg_catalog.string_agg(DISTINCT p.holder, '; ') AS in_the_way
    FROM place p
         JOIN idem_control c ON c.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) p.dedup
         LEFT JOIN oldest o ON o.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) p.dedup
         LEFT JOIN idem_purge_state s ON s.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) p.dedup
    WHERE
        -- A pass goes by a table that is locked,
        p.slot IS NULL
        AND p.mode OPERATOR(pg_catalog.<>) ALL (ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
        -- doesn't retire a generation to which somebody may be writing,
        OR pg_catalog.mod(o.generation OPERATOR(pg_catalog.-) p.slot, c.slots) OPERATOR(pg_catalog.=) 0
        AND o.droppable_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
        AND p.mode OPERATOR(pg_catalog.<>) ALL (ARRAY['AccessShareLock', 'RowShareLock', 'ShareLock'])
        -- and doesn't go on to a slot that somebody reads and that is not empty.
        OR pg_catalog.mod(c.current_generation OPERATOR(pg_catalog.+) 1 OPERATOR(pg_catalog.-) p.slot, c.slots)
            OPERATOR(pg_catalog.=) 0
        AND (c.current_generation OPERATOR(pg_catalog.-) c.oldest_generation)
            OPERATOR(pg_catalog.<) (c.slots OPERATOR(pg_catalog.-) 1)
        AND s.full_since IS NOT NULL
    GROUP BY p.dedup
)
SELECT r.dedup, GREATEST(s.last_pass, w.finished_at) AS last_pass, w.took,
       s.last_change, s.turned, s.retired, s.events_freed, s.bytes_freed, s.events_moved, s.events_given_up,
       o.generation AS oldest_generation, o.droppable_at, y.in_the_way, s.full_since,
       -- It may quote a row.
       CASE WHEN pg_catalog.pg_has_role(t.relowner, 'USAGE') OR pg_catalog.pg_has_role('pg_monitor', 'USAGE')
            THEN s.last_error END AS last_error,
       s.last_error_at,
       n.phase, n.blocks_done, n.blocks_total,
       (SELECT k.doubted_since FROM idem_clock k) AS clock_doubted_since
FROM idem_registry r
     JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     LEFT JOIN idem_purge_state s ON s.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     LEFT JOIN oldest o ON o.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     LEFT JOIN way y ON y.dedup OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid
     LEFT JOIN idem_worker_passes() w ON true
     LEFT JOIN idem_worker_progress() n ON n.dedup::pg_catalog.oid OPERATOR(pg_catalog.=) r.dedup::pg_catalog.oid;
COMMENT ON VIEW idem_purge_status IS 'what purging has done to each dedup table, and what keeps it from going on';
COMMENT ON COLUMN idem_purge_status.dedup IS 'the dedup table; to look for one: WHERE dedup = ''inbox''::regclass';
COMMENT ON COLUMN idem_purge_status.blocks_done IS 'how many blocks it has scanned';
COMMENT ON COLUMN idem_purge_status.blocks_total IS 'of how many';
COMMENT ON COLUMN idem_purge_status.last_pass IS 'when a pass last came through: the worker''s through this database since the server started, or what is on record of the table, to the hour';
COMMENT ON COLUMN idem_purge_status.took IS 'how long the worker''s latest pass took that came through';
COMMENT ON COLUMN idem_purge_status.oldest_generation IS 'the next one to be emptied; null = there is only the current one';
COMMENT ON COLUMN idem_purge_status.droppable_at IS 'when its last settled event expires';
COMMENT ON COLUMN idem_purge_status.in_the_way IS 'these locks keep the table from being purged, the expired generation from being emptied, or the ring from turning';
COMMENT ON COLUMN idem_purge_status.phase IS 'what the worker is at in this table right now; null = nothing';
COMMENT ON COLUMN idem_purge_status.clock_doubted_since IS 'since when nothing is purged, as the clock has jumped and not yet held steady for idem.clock_patience; null = it is believed';

GRANT SELECT ON idem_policy, idem_tables, idem_generations, idem_purge_status TO PUBLIC;
