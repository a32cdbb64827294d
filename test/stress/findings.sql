-- What must not be. Each query of stress.findings() says what is wrong; where nothing is, it returns no row.

CREATE VIEW stress.effect AS SELECT * FROM stress.ledger LEFT JOIN stress.remembered USING (entry);

-- Who took a claim of which life of an event (first_seen_at tells lives apart), and was told so.
CREATE VIEW stress.claim AS
SELECT * FROM stress.answer WHERE outcome = 'acquired' AND request IN ('acquire', 'accept');

-- Two effects of one event are double unless the event was forgotten when the second one's claim was made.
CREATE VIEW stress.double_effect AS
SELECT * FROM (
    SELECT e.*, max(expires_at) OVER earlier AS remembered_until, count(*) OVER life AS in_this_life
    FROM stress.effect e
    WINDOW earlier AS (PARTITION BY dedup, handler, event_id ORDER BY claimed_at, entry
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           life AS (PARTITION BY dedup, handler, event_id, first_seen_at ORDER BY claimed_at, entry)
) e
WHERE claimed_at < remembered_until OR in_this_life > 1;

CREATE FUNCTION stress.findings() RETURNS TABLE (finding text, example jsonb) LANGUAGE sql AS $$
    SELECT 'double effect', to_jsonb(d) FROM stress.double_effect d
    UNION ALL
    SELECT 'lost event: answered "duplicate", but there is no effect', to_jsonb(a)
    FROM stress.answer a
    WHERE a.outcome = 'duplicate' AND a.request <> 'INSERT 0 0' AND NOT EXISTS (
        SELECT FROM stress.effect e
        WHERE (e.dedup, e.handler, e.event_id, e.first_seen_at, e.attempt) = (a.dedup, a.handler, a.event_id, a.first_seen_at, a.attempt)
          AND e.claimed_at <= a.answered_at AND a.asked_at < e.expires_at)
    UNION ALL
    -- An effect that came later, from another delivery, would have been lost if the sender had believed the answer.
    SELECT 'lost event: answered INSERT 0 0, but it was not done yet', to_jsonb(a)
    FROM stress.answer a
    WHERE a.request = 'INSERT 0 0' AND NOT EXISTS (
        SELECT FROM stress.effect e
        WHERE (e.dedup, e.handler, e.event_id) = (a.dedup, a.handler, a.event_id)
          AND e.claimed_at <= a.answered_at AND a.asked_at < e.expires_at)
    UNION ALL
    SELECT 'effect of a claim that was lost or left unsettled', to_jsonb(e) FROM stress.effect e WHERE e.attempt IS NULL
    UNION ALL
    SELECT 'effect of another claim than the remembered one', to_jsonb(e) FROM stress.effect e WHERE e.attempt <> e.claim_attempt
    UNION ALL
    SELECT 'effect without a claim', to_jsonb(e)
    FROM stress.effect e
    WHERE NOT EXISTS (
        SELECT FROM stress.claim c
        WHERE (c.dedup, c.handler, c.event_id, c.first_seen_at, c.attempt) = (e.dedup, e.handler, e.event_id, e.first_seen_at, e.attempt))
    UNION ALL
    SELECT 'one fencing token given to two claims', to_jsonb(array_agg(c))
    FROM stress.claim c GROUP BY dedup, handler, event_id, first_seen_at, attempt HAVING count(*) > 1
    UNION ALL
    SELECT 'owner given a claim that nobody took', to_jsonb(a)
    FROM stress.answer a
    WHERE a.outcome = 'acquired' AND a.request = 'acquire as owner' AND NOT EXISTS (
        SELECT FROM stress.claim c
        WHERE (c.dedup, c.handler, c.event_id, c.first_seen_at, c.attempt) = (a.dedup, a.handler, a.event_id, a.first_seen_at, a.attempt))
    UNION ALL
    -- A forgotten event starts again at 1 once its row is purged; until then its tokens go on.
    SELECT 'fencing token went back', to_jsonb(l)
    FROM (
        SELECT dedup, handler, event_id, first_seen_at, min(attempt) AS first_attempt,
               lag(max(attempt)) OVER (PARTITION BY dedup, handler, event_id ORDER BY first_seen_at) AS latest_before
        FROM stress.answer WHERE first_seen_at IS NOT NULL AND request <> 'claim rolled back'
        GROUP BY dedup, handler, event_id, first_seen_at
    ) l
    WHERE first_attempt > 1 AND first_attempt <= latest_before
    UNION ALL
    SELECT 'genuine event answered "conflict"', to_jsonb(a)
    FROM stress.answer a WHERE a.outcome = 'conflict' AND a.request <> 'acquire forged'
    UNION ALL
    SELECT 'event never answered', to_jsonb(a) FROM stress.answer a WHERE a.request = 'never answered'
    UNION ALL
    SELECT 'event without an effect', to_jsonb(a)
    FROM stress.all_events() a
    WHERE NOT EXISTS (
        SELECT FROM stress.effect e WHERE (e.dedup, e.handler, e.event_id) = (a.dedup, a.handler, a.event_id))
$$;
