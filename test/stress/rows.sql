-- What is remembered, against what was done: for idem's own tables only.

CREATE VIEW stress.row AS
SELECT 'brief'::regclass AS dedup, * FROM brief UNION ALL SELECT 'sparse', * FROM sparse UNION ALL SELECT 'wide', * FROM wide
UNION ALL SELECT 'leased', * FROM leased UNION ALL SELECT 'kept', * FROM kept;

-- Slots between the oldest and the current generation; what else a slot holds is forgotten already.
CREATE VIEW stress.ring AS
SELECT c.dedup, generation % t.slots AS slot
FROM idem_control c JOIN stress.dedup_table t ON t.name::regclass = c.dedup,
     generate_series(c.oldest_generation, c.current_generation) AS generation;

-- In one statement, so that it may run beside the load.
CREATE FUNCTION stress.row_findings() RETURNS TABLE (finding text, example jsonb) LANGUAGE sql AS $$
    SELECT 'event remembered twice', to_jsonb(array_agg(r))
    FROM stress.row r JOIN stress.ring USING (dedup, slot) GROUP BY dedup, key HAVING count(*) > 1
    UNION ALL
    SELECT 'settled row without its effect', to_jsonb(r)
    FROM stress.row r
    WHERE r.state = 'done' AND NOT EXISTS (
        SELECT FROM stress.effect e
        WHERE (e.dedup, e.handler, e.event_id, e.first_seen_at, e.attempt, e.claimed_at, e.expires_at) =
              (r.dedup, r.handler, r.event_id, r.first_seen_at, r.attempt, COALESCE(r.claimed_at, r.first_seen_at), r.expires_at))
    UNION ALL
    SELECT 'effect which should be remembered, and is not', to_jsonb(e)
    FROM stress.effect e
    WHERE e.expires_at > clock_timestamp() AND NOT EXISTS (
        SELECT FROM stress.row r JOIN stress.ring USING (dedup, slot)
        WHERE (r.dedup, r.handler, r.event_id, r.first_seen_at, r.attempt, r.expires_at, r.state) =
              (e.dedup, e.handler, e.event_id, e.first_seen_at, e.attempt, e.expires_at, 'done'))
    UNION ALL
    SELECT 'row left in a state it can not have', to_jsonb(r)
    FROM stress.row r JOIN stress.dedup_table t ON t.name::regclass = r.dedup
    WHERE r.state = 'processing' AND t.mode = 'transaction' OR r.key <> idem_key(r.handler, r.event_id)
       OR (r.state = 'done') <> (r.claimable_at IS NULL)
$$;
