-- The database of the demo's receiver. None of its tables has a unique constraint: were an event to take effect twice,
-- both effects would show.

-- Claims of handlers whose effect is a row of this database: claim and effect share a transaction.
SELECT idem_create_table('inbox');

-- Claims of handlers whose effect is a message that leaves the database: a claim is a lease.
SELECT idem_create_table('outside', hot_window => '1 second', mode => 'lease');

-- Whoever watches the demo does not want to wait for retries for hours.
SELECT idem_set_policy(dedup, max_attempts => 8, backoff_base => '50 ms', backoff_cap => '400 ms')
FROM unnest('{inbox,outside}'::regclass[]) AS dedup;

-- What senders sign with.
CREATE TABLE webhook_secret (source text PRIMARY KEY, secret text NOT NULL);
INSERT INTO webhook_secret VALUES
    ('stripe', 'whsec_bm90IGEgc2VjcmV0LCBidXQgYSBkZW1v'), ('github', 'It''s a Secret to Everybody');

-- What the handlers did in this database.
CREATE TABLE ledger (
    handler   text NOT NULL,
    event_id  text NOT NULL,
    batch     text,
    cents     bigint NOT NULL
);

-- What the handlers did outside: it is written through connections of its own, and no ROLLBACK takes it back.
CREATE TABLE outside_world (LIKE ledger INCLUDING ALL);

-- The same traffic with nothing in its way.
CREATE TABLE ledger_without_idem (LIKE ledger INCLUDING ALL);

-- The handler wecom/store-message, which idem_once runs. It has a bug; fix.sql repairs it.
CREATE FUNCTION store_message(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $function$
DECLARE
    welcome text;
BEGIN
    INSERT INTO ledger VALUES ('wecom/store-message', payload ->> 'event_id', payload ->> 'batch', 0);
    IF payload #>> '{message,Event}' = 'subscribe' THEN
        EXECUTE $$SELECT 'Welcome, $$ || (payload #>> '{message,FromUserName}') || $$!'$$ INTO welcome;
    END IF;
    RETURN '{"cents": 0}';
END $function$;
