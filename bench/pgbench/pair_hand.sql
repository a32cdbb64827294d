-- A new event by hand: claim, business writes, settle.
\set event random(1, 9223372036854775807)
\set wallet random(1, 10000)
BEGIN;
INSERT INTO processed_event_c (handler, event_id, status, created_at, expires_at)
    VALUES ('charge-wallet', 'evt_' || :event, 'processing', now(), now() + '15 minutes') ON CONFLICT DO NOTHING;
INSERT INTO ledger VALUES ('evt_' || :event, 1000);
UPDATE wallet SET balance = balance - 1000 WHERE id = :wallet;
UPDATE processed_event_c SET status = 'done', expires_at = now() + '30 days'
    WHERE handler = 'charge-wallet' AND event_id = 'evt_' || :event;
COMMIT;
