-- The bug of store_message: whose name has a quote in it was not welcome.
CREATE OR REPLACE FUNCTION store_message(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $function$
DECLARE
    welcome text;
BEGIN
    INSERT INTO ledger VALUES ('wecom/store-message', payload ->> 'event_id', payload ->> 'batch', 0);
    IF payload #>> '{message,Event}' = 'subscribe' THEN
        welcome := 'Welcome, ' || (payload #>> '{message,FromUserName}') || '!';
    END IF;
    RETURN '{"cents": 0}';
END $function$;
