-- Retries: events received to be worked on later, handlers that fail, dead letters, handlers in one call.

CREATE FUNCTION idem_receive(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text        DEFAULT NULL,
    payload     jsonb       DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL,
    not_before  timestamptz DEFAULT NULL,
    replace     boolean     DEFAULT false,
    ordering    text        DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_receive';
COMMENT ON FUNCTION idem_receive(regclass, text, text, text, jsonb, bytea, timestamptz, timestamptz, boolean, text) IS
    'remembers an event with its payload, to be worked on later by idem_due; acquired = it is new, or replaced';

CREATE FUNCTION idem_due(
    dedup             regclass,
    handler           text     DEFAULT NULL,
    max_events        integer  DEFAULT 1,
    hot_window        interval DEFAULT NULL)
RETURNS SETOF idem_due_event LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_due';
COMMENT ON FUNCTION idem_due(regclass, text, integer, interval) IS
    'acquires received events, retries that are due and leases that ran out, those due for longest first; the k-th for k hot windows';

CREATE FUNCTION idem_dead_letters(
    dedup   regclass,
    handler text DEFAULT NULL)
RETURNS SETOF idem_event LANGUAGE C STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_dead_letters';
COMMENT ON FUNCTION idem_dead_letters(regclass, text) IS 'the events that were given up, oldest first';

CREATE FUNCTION idem_requeue(
    dedup    regclass,
    handler  text,
    event_id text,
    batch    text DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_requeue';
COMMENT ON FUNCTION idem_requeue(regclass, text, text, text) IS
    'lets an event that is neither done nor being worked on be tried again at once, with no failures counted';

CREATE FUNCTION idem_resolve(
    dedup    regclass,
    handler  text,
    event_id text,
    batch    text  DEFAULT NULL,
    note     text  DEFAULT NULL,
    result   jsonb DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_resolve';
COMMENT ON FUNCTION idem_resolve(regclass, text, text, text, text, jsonb) IS
    'settles by hand an event that nobody works on; the note says why';

CREATE FUNCTION idem_once(
    dedup       regclass,
    handler     text,
    event_id    text,
    action      regprocedure,
    payload     jsonb       DEFAULT NULL,
    batch       text        DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL,
    wait        interval    DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_once';
COMMENT ON FUNCTION idem_once(regclass, text, text, regprocedure, jsonb, text, bytea, timestamptz, interval) IS
    'acquires an event, runs action(payload) and commits its result, or undoes it and releases the event with its error';
