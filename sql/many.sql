-- Many events in one call.

CREATE FUNCTION idem_acquire_many(
    dedup             regclass,
    handler           text,
    event_ids         text[],
    batch             text          DEFAULT NULL,
    fingerprints      bytea[]       DEFAULT NULL,
    occurred_at       timestamptz[] DEFAULT NULL,
    payloads          jsonb[]       DEFAULT NULL,
    owner             text          DEFAULT NULL,
    hot_window        interval      DEFAULT NULL)
RETURNS SETOF idem_event_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_acquire_many';
COMMENT ON FUNCTION idem_acquire_many(regclass, text, text[], text, bytea[], timestamptz[], jsonb[], text, interval) IS
    'idem_acquire for many events of a handler: a row for each, in their order';

CREATE FUNCTION idem_commit_many(
    dedup       regclass,
    handler     text,
    event_ids   text[],
    batch       text      DEFAULT NULL,
    results     jsonb[]   DEFAULT NULL,
    attempts    integer[] DEFAULT NULL,
    cold_window interval  DEFAULT NULL)
RETURNS timestamptz LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_commit_many';
COMMENT ON FUNCTION idem_commit_many(regclass, text, text[], text, jsonb[], integer[], interval) IS
    'idem_commit for many events of a handler; answers until when all of them are remembered (null where there are none, or a claim was bypassed)';

CREATE FUNCTION idem_release_many(
    dedup             regclass,
    handler           text,
    event_ids         text[],
    batch             text      DEFAULT NULL,
    errors            text[]    DEFAULT NULL,
    attempts          integer[] DEFAULT NULL,
    retry_after       interval  DEFAULT NULL,
    retry             boolean   DEFAULT true)
RETURNS SETOF idem_event_claim LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_release_many';
COMMENT ON FUNCTION idem_release_many(regclass, text, text[], text, text[], integer[], interval, boolean) IS
    'idem_release for many events of a handler: a row for each, in their order';

CREATE FUNCTION idem_extend_many(
    dedup             regclass,
    handler           text,
    event_ids         text[],
    batch             text      DEFAULT NULL,
    attempts          integer[] DEFAULT NULL,
    hot_window        interval  DEFAULT NULL)
RETURNS SETOF idem_event_lease LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000 AS 'MODULE_PATHNAME', 'idem_extend_many';
COMMENT ON FUNCTION idem_extend_many(regclass, text, text[], text, integer[], interval) IS
    'heartbeat of what idem_due handed out, in the order of work: the k-th lease runs for at least k hot windows from now; a lost one is told, not raised';
