-- A new event by hand in one statement: the claim, the business write, and whether it was new.
\set event random(1, 9223372036854775807)
WITH claim AS (
    INSERT INTO processed_event_c (handler, event_id, status, created_at, expires_at)
        VALUES ('charge-wallet', 'evt_' || :event, 'done', now(), now() + '30 days')
        ON CONFLICT DO NOTHING RETURNING event_id),
effect AS (INSERT INTO ledger SELECT event_id, 1000 FROM claim)
SELECT count(*) FROM claim;
