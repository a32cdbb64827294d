-- A duplicate by hand, one statement in a transaction of its own.
\set event random(1, :known)
INSERT INTO processed_event_c_full (handler, event_id, status, created_at, expires_at)
    VALUES ('charge-wallet', 'evt_' || left(md5(:event::text), 24), 'processing', now(), now() + '15 minutes')
    ON CONFLICT DO NOTHING;
