-- Tables: what idem remembers of dedup tables, and the functions that make them and set their policies.

CREATE TABLE idem_registry (
    dedup              regclass PRIMARY KEY,
    mode               text NOT NULL CHECK (mode OPERATOR(pg_catalog.=) ANY (ARRAY['transaction', 'lease'])),
    hot_window         interval NOT NULL,
    cold_window        interval NOT NULL,
    unresolved_window  interval NOT NULL,
    max_attempts       integer NOT NULL,
    backoff_base       interval NOT NULL,
    backoff_cap        interval NOT NULL,
    on_unavailable     text NOT NULL CHECK (on_unavailable OPERATOR(pg_catalog.=) ANY (ARRAY['reject', 'allow'])),
    check_stale        boolean NOT NULL,
    skip_dead          boolean NOT NULL,
    notify             boolean NOT NULL
);
COMMENT ON TABLE idem_registry IS 'dedup tables of this database and their policies; written only by idem''s functions';
COMMENT ON COLUMN idem_registry.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_registry.mode IS 'transaction: claim, work and settling share a transaction; lease: they need not';
COMMENT ON COLUMN idem_registry.hot_window IS 'how long a claim keeps others out when its holder does not settle';
COMMENT ON COLUMN idem_registry.cold_window IS 'how long a settled event is remembered';
COMMENT ON COLUMN idem_registry.unresolved_window IS 'how long an unsettled event is kept after it became claimable';
COMMENT ON COLUMN idem_registry.max_attempts IS 'after so many failed tries an event is given up';
COMMENT ON COLUMN idem_registry.backoff_base IS 'longest pause after the first failure; it doubles with each further one';
COMMENT ON COLUMN idem_registry.backoff_cap IS 'longest pause after any failure';
COMMENT ON COLUMN idem_registry.on_unavailable IS 'what a claim does if the store is not available: reject = an error, allow = the work is done unprotected';
COMMENT ON COLUMN idem_registry.check_stale IS 'whether an unknown event whose occurred_at is older than the cold window is stale';
COMMENT ON COLUMN idem_registry.skip_dead IS 'whether idem_due goes on with an ordering key behind a dead event';
COMMENT ON COLUMN idem_registry.notify IS 'whether to NOTIFY idem_channel(dedup) when an event becomes due at once';

CREATE TABLE idem_handler_policy (
    dedup              regclass,
    handler            text COLLATE "C",
    mode               text CHECK (mode OPERATOR(pg_catalog.=) ANY (ARRAY['transaction', 'lease'])),
    hot_window         interval,
    cold_window        interval,
    unresolved_window  interval,
    max_attempts       integer,
    backoff_base       interval,
    backoff_cap        interval,
    on_unavailable     text CHECK (on_unavailable OPERATOR(pg_catalog.=) ANY (ARRAY['reject', 'allow'])),
    check_stale        boolean,
    skip_dead          boolean,
    notify             boolean,
    PRIMARY KEY (dedup, handler)
);
COMMENT ON TABLE idem_handler_policy IS 'where a handler''s policy differs from its dedup table''s; null = it does not';
COMMENT ON COLUMN idem_handler_policy.handler IS 'the handler';
COMMENT ON COLUMN idem_handler_policy.hot_window IS 'how long a claim keeps others out; not longer than the table''s';
COMMENT ON COLUMN idem_handler_policy.cold_window IS 'how long a settled event is remembered; not longer than the table''s';

CREATE TABLE idem_control (
    dedup              regclass PRIMARY KEY,
    slots              smallint NOT NULL,
    oldest_generation  bigint NOT NULL,
    current_generation bigint NOT NULL
);
COMMENT ON TABLE idem_control IS 'position of each dedup table''s ring; generation n lives in slot n modulo the number of slots';
COMMENT ON COLUMN idem_control.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_control.slots IS 'number of the table''s partitions';
COMMENT ON COLUMN idem_control.oldest_generation IS 'oldest generation which may hold live events';
COMMENT ON COLUMN idem_control.current_generation IS 'generation which takes new events';

CREATE TABLE idem_generation (
    dedup          regclass,
    generation     bigint,
    opened_at      timestamptz NOT NULL,
    sealed_at      timestamptz,
    scanned_at     timestamptz,
    events         bigint,
    unsettled      bigint,
    newest_expiry  timestamptz,
    PRIMARY KEY (dedup, generation)
);
COMMENT ON TABLE idem_generation IS 'generations in each dedup table''s ring, and what a scan found in the sealed ones';
COMMENT ON COLUMN idem_generation.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_generation.generation IS 'its number; it lives in slot number modulo slots';
COMMENT ON COLUMN idem_generation.opened_at IS 'when it became the one which takes new events';
COMMENT ON COLUMN idem_generation.sealed_at IS 'when the next one was opened; null = current, or not known';
COMMENT ON COLUMN idem_generation.scanned_at IS 'when the latest scan counted it; null = not yet';
COMMENT ON COLUMN idem_generation.events IS 'remembered events then';
COMMENT ON COLUMN idem_generation.unsettled IS 'unsettled events among them';
COMMENT ON COLUMN idem_generation.newest_expiry IS 'when the last of its settled events expires; null = there is none';

CREATE TABLE idem_purge_state (
    dedup          regclass PRIMARY KEY,
    last_change    timestamptz,
    turned         bigint NOT NULL,
    retired        bigint NOT NULL,
    events_freed   bigint NOT NULL,
    bytes_freed    bigint NOT NULL,
    events_moved   bigint NOT NULL,
    events_given_up bigint NOT NULL,
    full_since     timestamptz,
    last_error     text,
    last_error_at  timestamptz,
    last_pass      timestamptz
);
COMMENT ON TABLE idem_purge_state IS 'what purging has done to each dedup table so far';
COMMENT ON COLUMN idem_purge_state.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_purge_state.last_change IS 'when something was last done, or failed; null = never';
COMMENT ON COLUMN idem_purge_state.turned IS 'how many generations were opened';
COMMENT ON COLUMN idem_purge_state.retired IS 'how many generations were retired and emptied';
COMMENT ON COLUMN idem_purge_state.events_freed IS 'expired events in them';
COMMENT ON COLUMN idem_purge_state.bytes_freed IS 'bytes freed, indexes included';
COMMENT ON COLUMN idem_purge_state.events_moved IS 'unsettled events moved to the current generation';
COMMENT ON COLUMN idem_purge_state.events_given_up IS 'unsettled events forgotten at the end of their unresolved_window';
COMMENT ON COLUMN idem_purge_state.full_since IS 'since when the ring has no slot to go on to; null = it has';
COMMENT ON COLUMN idem_purge_state.last_error IS 'why the latest pass failed; null = it did not';
COMMENT ON COLUMN idem_purge_state.last_error_at IS 'when it did so first';
COMMENT ON COLUMN idem_purge_state.last_pass IS 'when a pass last came through the table, the worker''s or one by hand; a pass with nothing to do is noted once an hour';

CREATE TABLE idem_clock (
    only_row      boolean PRIMARY KEY,
    seen_at       timestamptz NOT NULL,
    steady        bigint NOT NULL,
    run           bigint NOT NULL,
    calm          bigint NOT NULL,
    doubted_since timestamptz
);
COMMENT ON TABLE idem_clock IS 'the clock as a pass over this database saw it, noted once an hour and when it jumps; one row, or none before the first pass';
COMMENT ON COLUMN idem_clock.only_row IS 'always true';
COMMENT ON COLUMN idem_clock.seen_at IS 'what time it was';
COMMENT ON COLUMN idem_clock.steady IS 'a clock that nobody sets, in microseconds';
COMMENT ON COLUMN idem_clock.run IS 'which start of the machine, as the steady clock means something within one only';
COMMENT ON COLUMN idem_clock.calm IS 'for how many microseconds the clock has held steady since it jumped';
COMMENT ON COLUMN idem_clock.doubted_since IS 'when it jumped, by its own time; null = it is believed';

-- pg_dump reads them as an ordinary owner, and they hold no secret. An error's text may quote a row, so it is shown by
-- idem_purge_status to those only who may read it; no dump has it.
GRANT SELECT ON idem_registry, idem_handler_policy, idem_control, idem_generation, idem_clock TO PUBLIC;
GRANT SELECT (dedup, last_change, turned, retired, events_freed, bytes_freed, events_moved, events_given_up, full_since, last_pass,
              last_error_at) ON idem_purge_state TO PUBLIC;

-- A dropped table leaves its rows behind until the next idem_create_table; they must not reach a dump.
SELECT pg_catalog.pg_extension_config_dump('idem_registry',
    'WHERE dedup::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_handler_policy',
    'WHERE dedup::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_control',
    'WHERE dedup::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_generation',
    'WHERE dedup::pg_catalog.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM pg_catalog.pg_class)');

CREATE FUNCTION idem_create_table(
    table_name  text,
    hot_window  interval DEFAULT '15 minutes',
    cold_window interval DEFAULT '30 days',
    mode        text     DEFAULT 'transaction',
    generations integer  DEFAULT 8,
    unlogged    boolean  DEFAULT false)
RETURNS regclass LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_create_table';
COMMENT ON FUNCTION idem_create_table(text, interval, interval, text, integer, boolean) IS
    'makes a dedup table; the name may be schema-qualified and quoted';

CREATE FUNCTION idem_attach_table(
    dedup       regclass,
    hot_window  interval DEFAULT '15 minutes',
    cold_window interval DEFAULT '30 days',
    mode        text     DEFAULT 'transaction')
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_attach_table';
COMMENT ON FUNCTION idem_attach_table(regclass, interval, interval, text) IS
    'registers a restored dedup table whose registration was lost';

CREATE FUNCTION idem_set_policy(
    dedup             regclass,
    handler           text     DEFAULT NULL,
    hot_window        interval DEFAULT NULL,
    cold_window       interval DEFAULT NULL,
    mode              text     DEFAULT NULL,
    max_attempts      integer  DEFAULT NULL,
    backoff_base      interval DEFAULT NULL,
    backoff_cap       interval DEFAULT NULL,
    on_unavailable    text     DEFAULT NULL,
    unresolved_window interval DEFAULT NULL,
    check_stale       boolean  DEFAULT NULL,
    skip_dead         boolean  DEFAULT NULL,
    notify            boolean  DEFAULT NULL)
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_set_policy';
COMMENT ON FUNCTION idem_set_policy(regclass, text, interval, interval, text, integer, interval, interval, text, interval, boolean, boolean, boolean) IS
    'changes the policy of a dedup table, or of one handler of it; what is null stays as it was; owner only';

CREATE FUNCTION idem_reset_policy(
    dedup   regclass,
    handler text)
RETURNS boolean LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_reset_policy';
COMMENT ON FUNCTION idem_reset_policy(regclass, text) IS
    'lets a handler inherit all of its dedup table''s policy again; false if it did so already; owner only';

CREATE FUNCTION idem_channel(dedup regclass)
RETURNS text LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_channel';
COMMENT ON FUNCTION idem_channel(regclass) IS
    'the channel to LISTEN to if the policy says notify: idem_ and the table''s OID; the payload is the handler';
