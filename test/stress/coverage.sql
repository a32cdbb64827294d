-- What the load did, and how much of each it must have done at least for its result to mean something.

CREATE FUNCTION stress.coverage() RETURNS TABLE (what text, times bigint, at_least integer) LANGUAGE sql AS $$
    SELECT 'claims, ' || isolation, count(*), 200 FROM stress.claim GROUP BY isolation
    UNION ALL
    SELECT 'claims by accept', count(*), 100 FROM stress.claim WHERE request = 'accept'
    UNION ALL
    SELECT 'answered ' || o.outcome, count(a.outcome), o.at_least
    FROM (VALUES ('duplicate', 500), ('busy', 100), ('backoff', 10), ('conflict', 20)) AS o(outcome, at_least)
    LEFT JOIN stress.answer a USING (outcome) GROUP BY o.outcome, o.at_least
    UNION ALL
    SELECT 'request: ' || r.request, count(a.request), 20
    FROM (VALUES ('give back'), ('fail'), ('record failure'), ('extend'), ('acquire as owner'), ('claim rolled back'), ('lease lost'),
                 ('accept refused'), ('INSERT 0 0'))
         AS r(request)
    LEFT JOIN stress.answer a USING (request) GROUP BY r.request
    UNION ALL
    SELECT 'asked to wait, answered ' || o.outcome, count(a.outcome), 20
    FROM (VALUES ('acquired'), ('duplicate'), ('busy')) AS o(outcome)
    LEFT JOIN stress.answer a ON a.outcome = o.outcome AND a.wait IS NOT NULL GROUP BY o.outcome
    UNION ALL
    SELECT 'leases taken over', count(*), 20
    FROM stress.claim taken JOIN stress.claim before USING (dedup, handler, event_id, first_seen_at)
    WHERE before.attempt = taken.attempt - 1 AND dedup = 'leased'::regclass AND NOT EXISTS (
        SELECT FROM stress.answer a
        WHERE (a.dedup, a.handler, a.event_id, a.first_seen_at, a.attempt) =
              (before.dedup, before.handler, before.event_id, before.first_seen_at, before.attempt)
          AND a.request IN ('give back', 'fail'))
    UNION ALL
    SELECT 'prepared transactions ' || CASE committed WHEN true THEN 'committed' ELSE 'rolled back' END, count(*), 10
    FROM stress.prepared GROUP BY committed
    UNION ALL
    SELECT 'transactions rolled back', xact_rollback, 100 FROM pg_stat_database WHERE datname = current_database()
    UNION ALL
    SELECT 'effects', count(*), 1000 FROM stress.effect
    UNION ALL
    SELECT 'events forgotten and claimed anew', count(*) - count(DISTINCT (dedup, handler, event_id)), 200 FROM stress.effect
    UNION ALL
    SELECT 'rotations of ' || t.name, current_generation, CASE t.name WHEN 'kept' THEN 15 ELSE 30 END
    FROM idem_control c JOIN stress.dedup_table t ON t.name::regclass = c.dedup
    UNION ALL
    SELECT 'retired generations of ' || t.name, oldest_generation, CASE t.name WHEN 'kept' THEN 0 ELSE 10 END
    FROM idem_control c JOIN stress.dedup_table t ON t.name::regclass = c.dedup
$$;
