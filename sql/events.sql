-- Events: their identity, claims and settling.

CREATE FUNCTION idem_key(handler text, event_id text, batch text DEFAULT NULL)
RETURNS uuid LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_key';
COMMENT ON FUNCTION idem_key(text, text, text) IS 'the stored key of an event; its format never changes';

CREATE FUNCTION idem_business_key(VARIADIC parts text[])
RETURNS text LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_business_key';
COMMENT ON FUNCTION idem_business_key(text[]) IS
    'an event_id out of stable fields, for senders without one; different parts never give the same id';

CREATE FUNCTION idem_business_key(required text[], optional text[])
RETURNS text LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_business_key_optional';
COMMENT ON FUNCTION idem_business_key(text[], text[]) IS
    'the same, followed by fields of which each may be null, where an event has none; an absent one is not like any that is there';

CREATE FUNCTION idem_fingerprint(content bytea)
RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_fingerprint_bytes';
COMMENT ON FUNCTION idem_fingerprint(bytea) IS 'fingerprint of exactly these bytes';

CREATE FUNCTION idem_fingerprint(content text)
RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_fingerprint_text';
COMMENT ON FUNCTION idem_fingerprint(text) IS 'fingerprint of exactly this text, as UTF-8';

CREATE FUNCTION idem_fingerprint(content jsonb, VARIADIC paths text[])
RETURNS bytea LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_fingerprint_jsonb';
COMMENT ON FUNCTION idem_fingerprint(jsonb, text[]) IS
    'fingerprint of the values at these paths only; a path is a key, or a list of keys as for #>: {data,object,amount}';

CREATE FUNCTION idem_acquire(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text        DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL,
    payload     jsonb       DEFAULT NULL,
    owner       text        DEFAULT NULL,
    wait        interval    DEFAULT NULL,
    hot_window  interval    DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_acquire';
COMMENT ON FUNCTION idem_acquire(regclass, text, text, text, bytea, timestamptz, jsonb, text, interval, interval) IS
    'claims an event for a handler, or tells why not; never blocks unless wait asks for it';

CREATE FUNCTION idem_accept(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text        DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL,
    result      jsonb       DEFAULT NULL,
    wait        interval    DEFAULT '1 second')
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_accept';
COMMENT ON FUNCTION idem_accept(regclass, text, text, text, bytea, timestamptz, jsonb, interval) IS
    'claims an event and settles it with the transaction that calls; answers only what is final, else raises ID004 after wait';

CREATE FUNCTION idem_commit(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    result      jsonb    DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    cold_window interval DEFAULT NULL)
RETURNS timestamptz LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_commit';
COMMENT ON FUNCTION idem_commit(regclass, text, text, text, jsonb, integer, interval) IS
    'settles a claim as done, and answers until when it is remembered (null where the claim was bypassed); attempt may be left out only in the transaction which acquired';

CREATE FUNCTION idem_release(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    error       text     DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    retry_after interval DEFAULT NULL,
    retry       boolean  DEFAULT true)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_release';
COMMENT ON FUNCTION idem_release(regclass, text, text, text, text, integer, interval, boolean) IS
    'settles a claim as failed (with error), for good if there is to be no retry, or gives it back (without)';

CREATE FUNCTION idem_extend(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    hot_window  interval DEFAULT NULL)
RETURNS timestamptz LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_extend';
COMMENT ON FUNCTION idem_extend(regclass, text, text, text, integer, interval) IS
    'heartbeat: lets a lease run for at least another hot window from now, and returns its end; null in transaction mode';

CREATE FUNCTION idem_lookup(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text DEFAULT NULL)
RETURNS idem_event LANGUAGE C STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_lookup';
COMMENT ON FUNCTION idem_lookup(regclass, text, text, text) IS
    'the remembered event, expired or not, or null';
