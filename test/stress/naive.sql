-- Deduplication as it is written by hand more often than it should be: look, and if nothing is there, insert; no unique index.
-- Functions of the names of idem's, so that the stress test can show that it sees what goes wrong.

CREATE EXTENSION idem SCHEMA public;  -- for its types and keys
CREATE SCHEMA naive;
SELECT format('ALTER DATABASE %I SET search_path = naive, public', current_database()) \gexec
SET search_path = naive, public;

CREATE FUNCTION idem_create_table(table_name text, hot_window interval, cold_window interval, mode text, generations integer)
RETURNS regclass LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I OF idem_event', table_name);
    EXECUTE format('CREATE INDEX ON %I (key)', table_name);
    EXECUTE format('COMMENT ON TABLE %I IS %L', table_name, cold_window);
    RETURN table_name::regclass;
END $$;

CREATE PROCEDURE idem_rotate(dedup regclass) LANGUAGE sql AS '';

CREATE FUNCTION idem_lookup(dedup regclass, handler text, event_id text, batch text DEFAULT NULL)
RETURNS idem_event LANGUAGE plpgsql AS $$
DECLARE
    r idem_event;
BEGIN
    EXECUTE format('SELECT * FROM %s WHERE key = $1 ORDER BY first_seen_at DESC LIMIT 1', dedup)
        INTO r USING idem_key(handler, event_id, batch);
    RETURN r;
END $$;

CREATE FUNCTION idem_acquire(dedup regclass, handler text, event_id text, batch text DEFAULT NULL, fingerprint bytea DEFAULT NULL,
                             occurred_at timestamptz DEFAULT NULL, payload jsonb DEFAULT NULL, owner text DEFAULT NULL,
                             wait interval DEFAULT NULL, hot_window interval DEFAULT NULL)
RETURNS idem_claim LANGUAGE plpgsql AS $$
DECLARE
    now   timestamptz := clock_timestamp();
    r     idem_event := idem_lookup(dedup, handler, event_id, batch);
    claim idem_claim;
BEGIN
    claim.acquired := false;
    IF r.key IS NULL OR r.expires_at <= now THEN
        r := NULL;
        r.key := idem_key(handler, event_id, batch);
        r.attempt := 1;
        r.first_seen_at := now;
        claim.acquired := true;
    ELSIF r.fingerprint <> fingerprint THEN
        claim.outcome := 'conflict';
    ELSIF r.state = 'done' THEN
        claim.outcome := 'duplicate';
        claim.result := r.result;
    ELSIF r.claimable_at <= now THEN
        r.attempt := r.attempt + 1;
        claim.acquired := true;
    ELSE
        claim.outcome := 'busy';
    END IF;
    claim.attempt := r.attempt;
    claim.first_seen_at := r.first_seen_at;

    IF claim.acquired THEN
        claim.outcome := 'acquired';
        EXECUTE format('DELETE FROM %s WHERE key = $1 AND first_seen_at = $2', dedup) USING r.key, r.first_seen_at;
        EXECUTE format('INSERT INTO %s (key, state, attempt, first_seen_at, claimed_at, claimable_at, expires_at, fingerprint)
                        VALUES ($1, ''processing'', $2, $3, $4, $5, ''infinity'', $6)', dedup)
            USING r.key, r.attempt, r.first_seen_at, now, now + COALESCE(hot_window, '150 ms'), fingerprint;
    END IF;
    RETURN claim;
END $$;

CREATE FUNCTION idem_commit(dedup regclass, handler text, event_id text, batch text DEFAULT NULL, result jsonb DEFAULT NULL,
                            attempt integer DEFAULT NULL, cold_window interval DEFAULT NULL)
RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %s SET state = ''done'', claimable_at = NULL, result = $3, expires_at = clock_timestamp() + $4
                    WHERE key = $1 AND attempt = COALESCE($2, attempt)', dedup)
        USING idem_key(handler, event_id, batch), attempt, result, obj_description(dedup, 'pg_class')::interval;
END $$;

CREATE FUNCTION idem_accept(dedup regclass, handler text, event_id text, batch text DEFAULT NULL, fingerprint bytea DEFAULT NULL,
                            occurred_at timestamptz DEFAULT NULL, result jsonb DEFAULT NULL, wait interval DEFAULT '1 second')
RETURNS idem_claim LANGUAGE plpgsql AS $$
DECLARE
    claim idem_claim := idem_acquire(dedup, handler, event_id, batch, fingerprint);
BEGIN
    IF claim.acquired THEN
        PERFORM idem_commit(dedup, handler, event_id, batch, result, claim.attempt);
    END IF;
    RETURN claim;
END $$;

CREATE FUNCTION idem_release(dedup regclass, handler text, event_id text, batch text DEFAULT NULL, error text DEFAULT NULL,
                             attempt integer DEFAULT NULL, retry_after interval DEFAULT NULL)
RETURNS idem_claim LANGUAGE plpgsql AS $$
DECLARE
    claim idem_claim;
BEGIN
    EXECUTE format('UPDATE %s SET state = ''failed'', claimable_at = clock_timestamp()
                    WHERE key = $1 AND attempt = COALESCE($2, attempt) AND state = ''processing''', dedup)
        USING idem_key(handler, event_id, batch), attempt;
    claim.acquired := false;
    claim.outcome := 'backoff';
    RETURN claim;
END $$;

CREATE FUNCTION idem_extend(dedup regclass, handler text, event_id text, batch text DEFAULT NULL, attempt integer DEFAULT NULL,
                            hot_window interval DEFAULT NULL)
RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
