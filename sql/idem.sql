-- Objects of the extension idem. This file holds the current version; the build copies it to idem--VERSION.sql.
-- Names are found through pg_extension, so that the extension may live in any schema.

\echo Use "CREATE EXTENSION idem" to load this file. \quit

-- ---------------------------------------------------------------------------------------------------------------------
-- Types
-- ---------------------------------------------------------------------------------------------------------------------

CREATE TYPE idem_state AS ENUM ('pending', 'processing', 'done', 'failed', 'dead');
COMMENT ON TYPE idem_state IS 'state of a remembered event: received, being worked on, settled, waiting for a retry, given up';

CREATE TYPE idem_outcome AS ENUM ('acquired', 'duplicate', 'busy', 'backoff', 'dead', 'conflict', 'stale', 'bypassed');
COMMENT ON TYPE idem_outcome IS 'answer of an acquire; only acquired and bypassed mean: do the work';

-- Dedup tables are OF this type, so it does not change within a major version. Fixed-width columns come in an order which
-- needs no padding in a settled row; what does not apply, or equals first_seen_at, is null and takes no room.
CREATE TYPE idem_event AS (
    key            uuid,
    state          idem_state,
    attempt        integer,
    first_seen_at  timestamptz,
    claimed_at     timestamptz,
    claimable_at   timestamptz,
    settled_at     timestamptz,
    expires_at     timestamptz,
    failures       integer,
    slot           smallint,
    handler        text COLLATE "C",
    event_id       text COLLATE "C",
    batch          text COLLATE "C",
    fingerprint    bytea,
    owner          text COLLATE "C",
    result         jsonb,
    error          text,
    payload        jsonb,
    extra          jsonb
);
COMMENT ON TYPE idem_event IS 'one remembered event, a row of a dedup table';
COMMENT ON COLUMN idem_event.key IS 'idem_key(handler, event_id, batch), unique in the whole dedup table';
COMMENT ON COLUMN idem_event.state IS 'pending, processing, done, failed or dead';
COMMENT ON COLUMN idem_event.attempt IS 'fencing token of the latest claim; grows with every retake';
COMMENT ON COLUMN idem_event.first_seen_at IS 'when the event was first claimed or recorded';
COMMENT ON COLUMN idem_event.claimed_at IS 'when the latest claim was made; null = first_seen_at';
COMMENT ON COLUMN idem_event.claimable_at IS 'end of the lease, or time of the next try; infinity = dead; null = done';
COMMENT ON COLUMN idem_event.settled_at IS 'when a done event was settled; null = first_seen_at';
COMMENT ON COLUMN idem_event.expires_at IS 'when the event is forgotten';
COMMENT ON COLUMN idem_event.failures IS 'failed tries so far, run-out leases among them';
COMMENT ON COLUMN idem_event.slot IS 'partition which holds the row';
COMMENT ON COLUMN idem_event.handler IS 'consumer of the event';
COMMENT ON COLUMN idem_event.event_id IS 'the sender''s id of the event, or idem_business_key() of its stable fields';
COMMENT ON COLUMN idem_event.batch IS 'names a deliberate resend; null = none';
COMMENT ON COLUMN idem_event.fingerprint IS 'idem_fingerprint() of what must not differ between deliveries; null = not checked';
COMMENT ON COLUMN idem_event.owner IS 'the caller''s own token of the latest claim';
COMMENT ON COLUMN idem_event.result IS 'what idem_commit stored, returned to duplicates';
COMMENT ON COLUMN idem_event.error IS 'why the latest try failed';
COMMENT ON COLUMN idem_event.payload IS 'payload of an unsettled event; dropped when it is done';
COMMENT ON COLUMN idem_event.extra IS 'reserved for later versions';

CREATE TYPE idem_claim AS (
    acquired       boolean,
    outcome        idem_outcome,
    attempt        integer,
    first_seen_at  timestamptz,
    retry_after    interval,
    result         jsonb,
    error          text
);
COMMENT ON TYPE idem_claim IS 'answer of idem_acquire, idem_accept and idem_release';
COMMENT ON COLUMN idem_claim.acquired IS 'true: the caller holds the claim and does the work';
COMMENT ON COLUMN idem_claim.outcome IS 'acquired, or why not';
COMMENT ON COLUMN idem_claim.attempt IS 'fencing token; pass it to idem_commit, idem_release and idem_extend from another transaction';
COMMENT ON COLUMN idem_claim.first_seen_at IS 'when this event was first claimed or recorded';
COMMENT ON COLUMN idem_claim.retry_after IS 'how long to wait before the next try; null = do not retry';
COMMENT ON COLUMN idem_claim.result IS 'duplicate: what idem_commit stored';
COMMENT ON COLUMN idem_claim.error IS 'failed or dead event: why its latest try failed';

CREATE TYPE idem_event_claim AS (
    event_id       text,
    acquired       boolean,
    outcome        idem_outcome,
    attempt        integer,
    first_seen_at  timestamptz,
    retry_after    interval,
    result         jsonb,
    error          text
);
COMMENT ON TYPE idem_event_claim IS 'answer of idem_acquire_many and idem_release_many for one event: its id, and what idem_claim has';
COMMENT ON COLUMN idem_event_claim.event_id IS 'the event, as it was given';
COMMENT ON COLUMN idem_event_claim.acquired IS 'true: the caller holds the claim and does the work';
COMMENT ON COLUMN idem_event_claim.outcome IS 'acquired, or why not; duplicate also for the second of two equal ids';
COMMENT ON COLUMN idem_event_claim.attempt IS 'fencing token';
COMMENT ON COLUMN idem_event_claim.first_seen_at IS 'when this event was first claimed or recorded';
COMMENT ON COLUMN idem_event_claim.retry_after IS 'how long to wait before the next try; null = do not retry';
COMMENT ON COLUMN idem_event_claim.result IS 'duplicate: what idem_commit stored';
COMMENT ON COLUMN idem_event_claim.error IS 'failed or dead event: why its latest try failed';

CREATE TYPE idem_due_event AS (
    handler        text,
    event_id       text,
    batch          text,
    attempt        integer,
    failures       integer,
    first_seen_at  timestamptz,
    payload        jsonb,
    error          text
);
COMMENT ON TYPE idem_due_event IS 'an event which idem_due has acquired for its caller';
COMMENT ON COLUMN idem_due_event.handler IS 'consumer of the event';
COMMENT ON COLUMN idem_due_event.event_id IS 'its id';
COMMENT ON COLUMN idem_due_event.batch IS 'its batch; null = none';
COMMENT ON COLUMN idem_due_event.attempt IS 'fencing token; pass it to idem_commit, idem_release and idem_extend from another transaction';
COMMENT ON COLUMN idem_due_event.failures IS 'failed tries so far, run-out leases among them';
COMMENT ON COLUMN idem_due_event.first_seen_at IS 'when it was first claimed or recorded';
COMMENT ON COLUMN idem_due_event.payload IS 'its payload, if one was given';
COMMENT ON COLUMN idem_due_event.error IS 'why the latest try failed; null = there was none';

-- ---------------------------------------------------------------------------------------------------------------------
-- Registry, control and gate
-- ---------------------------------------------------------------------------------------------------------------------

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
    check_stale        boolean NOT NULL
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
    PRIMARY KEY (dedup, handler)
);
COMMENT ON TABLE idem_handler_policy IS 'where a handler''s policy differs from its dedup table''s; null = it does not';
COMMENT ON COLUMN idem_handler_policy.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_handler_policy.handler IS 'the handler';
COMMENT ON COLUMN idem_handler_policy.mode IS 'transaction or lease';
COMMENT ON COLUMN idem_handler_policy.hot_window IS 'how long a claim keeps others out; not longer than the table''s';
COMMENT ON COLUMN idem_handler_policy.cold_window IS 'how long a settled event is remembered; not longer than the table''s';
COMMENT ON COLUMN idem_handler_policy.unresolved_window IS 'how long an unsettled event is kept after it became claimable';
COMMENT ON COLUMN idem_handler_policy.max_attempts IS 'after so many failed tries an event is given up';
COMMENT ON COLUMN idem_handler_policy.backoff_base IS 'longest pause after the first failure';
COMMENT ON COLUMN idem_handler_policy.backoff_cap IS 'longest pause after any failure';
COMMENT ON COLUMN idem_handler_policy.on_unavailable IS 'reject or allow';
COMMENT ON COLUMN idem_handler_policy.check_stale IS 'whether an unknown event may be stale';

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
    last_change    timestamptz NOT NULL,
    turned         bigint NOT NULL,
    retired        bigint NOT NULL,
    events_freed   bigint NOT NULL,
    bytes_freed    bigint NOT NULL,
    events_moved   bigint NOT NULL,
    events_given_up bigint NOT NULL,
    full_since     timestamptz,
    last_error     text,
    last_error_at  timestamptz
);
COMMENT ON TABLE idem_purge_state IS 'what purging has done to each dedup table so far';
COMMENT ON COLUMN idem_purge_state.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_purge_state.last_change IS 'when something was last done, or failed';
COMMENT ON COLUMN idem_purge_state.turned IS 'how many generations were opened';
COMMENT ON COLUMN idem_purge_state.retired IS 'how many generations were retired and emptied';
COMMENT ON COLUMN idem_purge_state.events_freed IS 'expired events in them';
COMMENT ON COLUMN idem_purge_state.bytes_freed IS 'bytes freed, indexes included';
COMMENT ON COLUMN idem_purge_state.events_moved IS 'unsettled events moved to the current generation';
COMMENT ON COLUMN idem_purge_state.events_given_up IS 'unsettled events forgotten at the end of their unresolved_window';
COMMENT ON COLUMN idem_purge_state.full_since IS 'since when the ring has no slot to go on to; null = it has';
COMMENT ON COLUMN idem_purge_state.last_error IS 'why the latest pass failed; null = it did not';
COMMENT ON COLUMN idem_purge_state.last_error_at IS 'when it did so first';

-- A zero-column table: only its lock matters (docs/storage.md).
CREATE TABLE idem_gate ();
COMMENT ON TABLE idem_gate IS 'lock of idem''s storage: shared for the length of a call, exclusive while a ring turns; nobody else may lock it';
REVOKE ALL ON idem_gate FROM PUBLIC;

-- pg_dump reads them as an ordinary owner, and they hold no secret.
GRANT SELECT ON idem_registry, idem_handler_policy, idem_control, idem_generation, idem_purge_state TO PUBLIC;

-- A dropped table leaves its rows behind until the next idem_create_table; they must not reach a dump.
SELECT pg_catalog.pg_extension_config_dump('idem_registry',
    'WHERE dedup::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_handler_policy',
    'WHERE dedup::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_control',
    'WHERE dedup::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_catalog.pg_extension_config_dump('idem_generation',
    'WHERE dedup::pg_catalog.oid IN (SELECT oid FROM pg_catalog.pg_class)');

-- ---------------------------------------------------------------------------------------------------------------------
-- Dedup tables
-- ---------------------------------------------------------------------------------------------------------------------

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
    check_stale       boolean  DEFAULT NULL)
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_set_policy';
COMMENT ON FUNCTION idem_set_policy(regclass, text, interval, interval, text, integer, interval, interval, text, interval, boolean) IS
    'changes the policy of a dedup table, or of one handler of it; what is null stays as it was; owner only';

CREATE FUNCTION idem_reset_policy(
    dedup   regclass,
    handler text)
RETURNS boolean LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_reset_policy';
COMMENT ON FUNCTION idem_reset_policy(regclass, text) IS
    'lets a handler inherit all of its dedup table''s policy again; false if it did so already; owner only';

CREATE VIEW idem_policy AS
SELECT r.dedup, NULL::text COLLATE "C" AS handler, r.mode, r.hot_window, r.cold_window, r.unresolved_window,
       r.max_attempts, r.backoff_base, r.backoff_cap, r.on_unavailable, r.check_stale
FROM idem_registry r JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.dedup
UNION ALL
SELECT r.dedup, h.handler, COALESCE(h.mode, r.mode), COALESCE(h.hot_window, r.hot_window),
       COALESCE(h.cold_window, r.cold_window), COALESCE(h.unresolved_window, r.unresolved_window),
       COALESCE(h.max_attempts, r.max_attempts), COALESCE(h.backoff_base, r.backoff_base),
       COALESCE(h.backoff_cap, r.backoff_cap), COALESCE(h.on_unavailable, r.on_unavailable),
       COALESCE(h.check_stale, r.check_stale)
FROM idem_registry r JOIN idem_handler_policy h USING (dedup)
     JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) r.dedup;
COMMENT ON VIEW idem_policy IS 'the policy of each dedup table, and of each handler that has one of its own, with what it inherits';
COMMENT ON COLUMN idem_policy.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_policy.handler IS 'the handler; null = all that have no row of their own';
COMMENT ON COLUMN idem_policy.mode IS 'transaction or lease';
COMMENT ON COLUMN idem_policy.hot_window IS 'how long a claim keeps others out when its holder does not settle';
COMMENT ON COLUMN idem_policy.cold_window IS 'how long a settled event is remembered';
COMMENT ON COLUMN idem_policy.unresolved_window IS 'how long an unsettled event is kept after it became claimable';
COMMENT ON COLUMN idem_policy.max_attempts IS 'after so many failed tries an event is given up';
COMMENT ON COLUMN idem_policy.backoff_base IS 'longest pause after the first failure; it doubles with each further one';
COMMENT ON COLUMN idem_policy.backoff_cap IS 'longest pause after any failure';
COMMENT ON COLUMN idem_policy.on_unavailable IS 'what a claim does if the store is not available: reject or allow';
COMMENT ON COLUMN idem_policy.check_stale IS 'whether an unknown event may be stale';

CREATE FUNCTION idem_touch()
RETURNS trigger LANGUAGE C AS 'MODULE_PATHNAME', 'idem_touch';
COMMENT ON FUNCTION idem_touch() IS
    'trigger of each partition of a dedup table: tells idem that somebody else has written to it';

CREATE PROCEDURE idem_rotate(dedup regclass)
LANGUAGE C AS 'MODULE_PATHNAME', 'idem_rotate';
COMMENT ON PROCEDURE idem_rotate(regclass) IS
    'opens the next generation of a dedup table, and empties the oldest one where all of it has expired; owner only, outside a transaction block';

CREATE PROCEDURE idem_purge(dedup regclass DEFAULT NULL)
LANGUAGE C AS 'MODULE_PATHNAME', 'idem_purge';
COMMENT ON PROCEDURE idem_purge(regclass) IS
    'does what the worker does, for one dedup table or all that the caller owns: turns the ring where that is due, empties what has expired; outside a transaction block';

-- ---------------------------------------------------------------------------------------------------------------------
-- Claims
-- ---------------------------------------------------------------------------------------------------------------------

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
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_acquire';
COMMENT ON FUNCTION idem_acquire(regclass, text, text, text, bytea, timestamptz, jsonb, text, interval, interval) IS
    'claims an event for a handler, or tells why not; never blocks unless wait asks for it';

CREATE FUNCTION idem_accept(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text        DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL,
    result      jsonb       DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_accept';
COMMENT ON FUNCTION idem_accept(regclass, text, text, text, bytea, timestamptz, jsonb) IS
    'claims an event and settles it with the transaction that calls';

CREATE FUNCTION idem_commit(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    result      jsonb    DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    cold_window interval DEFAULT NULL)
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_commit';
COMMENT ON FUNCTION idem_commit(regclass, text, text, text, jsonb, integer, interval) IS
    'settles a claim as done; attempt may be left out only in the transaction which acquired';

CREATE FUNCTION idem_release(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    error       text     DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    retry_after interval DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_release';
COMMENT ON FUNCTION idem_release(regclass, text, text, text, text, integer, interval) IS
    'settles a claim as failed (with error) or gives it back (without)';

CREATE FUNCTION idem_extend(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text     DEFAULT NULL,
    attempt     integer  DEFAULT NULL,
    hot_window  interval DEFAULT NULL)
RETURNS timestamptz LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_extend';
COMMENT ON FUNCTION idem_extend(regclass, text, text, text, integer, interval) IS
    'heartbeat: lets a lease run for at least another hot window from now, and returns its end; null in transaction mode';

-- ---------------------------------------------------------------------------------------------------------------------
-- When handlers fail
-- ---------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_receive(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text        DEFAULT NULL,
    payload     jsonb       DEFAULT NULL,
    fingerprint bytea       DEFAULT NULL,
    occurred_at timestamptz DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_receive';
COMMENT ON FUNCTION idem_receive(regclass, text, text, text, jsonb, bytea, timestamptz) IS
    'remembers an event with its payload, to be worked on later by idem_due; acquired = it is new';

CREATE FUNCTION idem_due(
    dedup             regclass,
    handler           text    DEFAULT NULL,
    max_events        integer DEFAULT 100)
RETURNS SETOF idem_due_event LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_due';
COMMENT ON FUNCTION idem_due(regclass, text, integer) IS
    'acquires received events, retries that are due and leases that ran out, those due for longest first';

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
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_requeue';
COMMENT ON FUNCTION idem_requeue(regclass, text, text, text) IS
    'lets an event that is neither done nor being worked on be tried again at once, with no failures counted';

CREATE FUNCTION idem_resolve(
    dedup    regclass,
    handler  text,
    event_id text,
    batch    text  DEFAULT NULL,
    note     text  DEFAULT NULL,
    result   jsonb DEFAULT NULL)
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_resolve';
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
RETURNS idem_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_once';
COMMENT ON FUNCTION idem_once(regclass, text, text, regprocedure, jsonb, text, bytea, timestamptz, interval) IS
    'acquires an event, runs action(payload) and commits its result, or undoes it and releases the event with its error';

-- ---------------------------------------------------------------------------------------------------------------------
-- Many events in one call
-- ---------------------------------------------------------------------------------------------------------------------

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
RETURNS SETOF idem_event_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_acquire_many';
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
RETURNS void LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_commit_many';
COMMENT ON FUNCTION idem_commit_many(regclass, text, text[], text, jsonb[], integer[], interval) IS
    'idem_commit for many events of a handler';

CREATE FUNCTION idem_release_many(
    dedup             regclass,
    handler           text,
    event_ids         text[],
    batch             text      DEFAULT NULL,
    errors            text[]    DEFAULT NULL,
    attempts          integer[] DEFAULT NULL,
    retry_after       interval  DEFAULT NULL)
RETURNS SETOF idem_event_claim LANGUAGE C VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_release_many';
COMMENT ON FUNCTION idem_release_many(regclass, text, text[], text, text[], integer[], interval) IS
    'idem_release for many events of a handler: a row for each, in their order';

CREATE FUNCTION idem_lookup(
    dedup       regclass,
    handler     text,
    event_id    text,
    batch       text DEFAULT NULL)
RETURNS idem_event LANGUAGE C STABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'idem_lookup';
COMMENT ON FUNCTION idem_lookup(regclass, text, text, text) IS
    'the remembered event, expired or not, or null';

-- ---------------------------------------------------------------------------------------------------------------------
-- What the worker does
-- ---------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_worker_passes(
    OUT started_at    timestamptz,
    OUT finished_at   timestamptz,
    OUT tables        integer,
    OUT failed_tables integer)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_worker_passes';
COMMENT ON FUNCTION idem_worker_passes() IS
    'when the background worker last began a pass over this database, when it last came through, and with how many tables; no row = not since the server started';

CREATE FUNCTION idem_worker_progress(
    OUT dedup        regclass,
    OUT phase        text,
    OUT blocks_done  bigint,
    OUT blocks_total bigint)
RETURNS SETOF record LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_worker_progress';
COMMENT ON FUNCTION idem_worker_progress() IS
    'what the background worker is at in this database right now: retire, move, seal, turn or empty; no row = nothing';

CREATE FUNCTION idem_preloaded()
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_preloaded';
COMMENT ON FUNCTION idem_preloaded() IS
    'whether the server has loaded idem by shared_preload_libraries, so that there are a worker and filters';

CREATE FUNCTION idem_bypassed(dedup regclass)
RETURNS bigint LANGUAGE C VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_bypassed';
COMMENT ON FUNCTION idem_bypassed(regclass) IS
    'how many claims on a dedup table were answered bypassed since the server started; null = not counted, as idem is not preloaded';

CREATE FUNCTION idem_filter(
    dedup     regclass,
    OUT bytes bigint,
    OUT slots integer[])
RETURNS record LANGUAGE C VOLATILE STRICT PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_filter';
COMMENT ON FUNCTION idem_filter(regclass) IS
    'shared memory of a dedup table''s filter, and the slots that look-ups use it for; nulls = it has none';

-- ---------------------------------------------------------------------------------------------------------------------
-- What an operator looks at
-- ---------------------------------------------------------------------------------------------------------------------

CREATE VIEW idem_tables AS
SELECT r.dedup, r.mode, r.hot_window, r.cold_window, r.unresolved_window, c.slots,
       c.oldest_generation, c.current_generation, p.events, p.bytes,
       (idem_filter(r.dedup)).bytes AS filter_bytes, idem_bypassed(r.dedup) AS bypassed, idem_preloaded() AS preloaded
FROM idem_registry r
     JOIN idem_control c USING (dedup)
     JOIN LATERAL (
         SELECT pg_catalog.sum(pg_catalog.pg_stat_get_live_tuples(i.inhrelid))::bigint AS events,
                pg_catalog.sum(pg_catalog.pg_total_relation_size(i.inhrelid))::bigint AS bytes
         FROM pg_catalog.pg_inherits i WHERE i.inhparent OPERATOR(pg_catalog.=) r.dedup
         ) p ON p.bytes IS NOT NULL;
COMMENT ON VIEW idem_tables IS 'dedup tables of this database';
COMMENT ON COLUMN idem_tables.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_tables.mode IS 'transaction or lease';
COMMENT ON COLUMN idem_tables.hot_window IS 'how long a claim keeps others out';
COMMENT ON COLUMN idem_tables.cold_window IS 'how long a settled event is remembered';
COMMENT ON COLUMN idem_tables.unresolved_window IS 'how long an unsettled event is kept after it became claimable';
COMMENT ON COLUMN idem_tables.oldest_generation IS 'oldest generation which may hold live events';
COMMENT ON COLUMN idem_tables.current_generation IS 'generation which takes new events';
COMMENT ON COLUMN idem_tables.slots IS 'number of partitions';
COMMENT ON COLUMN idem_tables.events IS 'remembered events, estimated by the server''s statistics';
COMMENT ON COLUMN idem_tables.bytes IS 'size on disk, indexes included';
COMMENT ON COLUMN idem_tables.filter_bytes IS 'shared memory of its filter; null = it has none';
COMMENT ON COLUMN idem_tables.bypassed IS 'claims answered bypassed since the server started, rolled back or not; null = not counted';
COMMENT ON COLUMN idem_tables.preloaded IS 'whether a worker purges it, and it may have a filter; if not, CALL idem_purge() regularly';

CREATE VIEW idem_generations AS
SELECT g.dedup, g.generation, p.slot, p.partition, g.opened_at, g.sealed_at, g.scanned_at, g.events, g.unsettled,
       g.newest_expiry,
       CASE WHEN g.scanned_at IS NOT NULL THEN COALESCE(g.newest_expiry, g.scanned_at) END AS droppable_at,
       COALESCE(p.slot::integer OPERATOR(pg_catalog.=) ANY ((idem_filter(g.dedup)).slots), false) AS filter,
       pg_catalog.pg_total_relation_size(p.partition) AS bytes
FROM idem_generation g
     JOIN idem_control c USING (dedup)
     JOIN LATERAL (
         SELECT k.oid::regclass AS partition,
                pg_catalog."substring"(pg_catalog.pg_get_expr(k.relpartbound, 0), '[0-9]+')::smallint AS slot
         FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class k ON k.oid OPERATOR(pg_catalog.=) i.inhrelid
         WHERE i.inhparent OPERATOR(pg_catalog.=) g.dedup
         ) p ON p.slot OPERATOR(pg_catalog.=)
                pg_catalog.mod(pg_catalog.mod(g.generation, c.slots) OPERATOR(pg_catalog.+) c.slots, c.slots)
ORDER BY g.dedup, g.generation;
COMMENT ON VIEW idem_generations IS 'generations in the rings of this database''s dedup tables, oldest first';
COMMENT ON COLUMN idem_generations.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_generations.generation IS 'its number';
COMMENT ON COLUMN idem_generations.slot IS 'number of the partition which holds it';
COMMENT ON COLUMN idem_generations.partition IS 'the partition';
COMMENT ON COLUMN idem_generations.opened_at IS 'when it became the one which takes new events';
COMMENT ON COLUMN idem_generations.sealed_at IS 'when the next one was opened; null = current';
COMMENT ON COLUMN idem_generations.scanned_at IS 'when it was last scanned';
COMMENT ON COLUMN idem_generations.unsettled IS 'unsettled events among them';
COMMENT ON COLUMN idem_generations.newest_expiry IS 'when the last of its settled events expires; null = there is none, or it was not scanned';
COMMENT ON COLUMN idem_generations.events IS 'events when it was last scanned; null = not yet, or current';
COMMENT ON COLUMN idem_generations.droppable_at IS 'when its last settled event expires, so that it can be emptied; null = not known yet';
COMMENT ON COLUMN idem_generations.filter IS 'whether look-ups of new events skip it by a filter';
COMMENT ON COLUMN idem_generations.bytes IS 'size on disk, indexes included';

CREATE VIEW idem_purge_status AS
SELECT r.dedup, w.finished_at AS last_pass, w.finished_at OPERATOR(pg_catalog.-) w.started_at AS took,
       s.last_change, s.turned, s.retired, s.events_freed, s.bytes_freed, s.events_moved, s.events_given_up,
       o.generation AS oldest_generation, o.droppable_at, l.in_the_way, s.full_since, s.last_error, s.last_error_at,
       n.phase, n.blocks_done, n.blocks_total
FROM idem_registry r
     JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) r.dedup
     JOIN idem_control c USING (dedup)
     LEFT JOIN idem_purge_state s USING (dedup)
     LEFT JOIN idem_worker_passes() w ON true
     LEFT JOIN idem_worker_progress() n USING (dedup)
     LEFT JOIN LATERAL (
         SELECT g.generation,
                CASE WHEN g.scanned_at IS NOT NULL THEN COALESCE(g.newest_expiry, g.scanned_at) END AS droppable_at
         FROM idem_generation g
         WHERE g.dedup OPERATOR(pg_catalog.=) r.dedup AND g.generation OPERATOR(pg_catalog.=) c.oldest_generation
           AND c.oldest_generation OPERATOR(pg_catalog.<) c.current_generation
         ) o ON true
     -- Nothing here may lock a partition, or nobody could see who has.
     LEFT JOIN LATERAL (
         SELECT pg_catalog.string_agg(DISTINCT
                    CASE WHEN l.pid IS NOT NULL THEN pg_catalog.format('%s of process %s', l.mode, l.pid)
                         ELSE pg_catalog.format('%s of prepared transaction "%s"', l.mode, x.gid) END,
                    '; ') AS in_the_way
         FROM pg_catalog.pg_locks l
              -- A prepared transaction has no process, and locks its own number.
              LEFT JOIN (pg_catalog.pg_locks n
                         JOIN pg_catalog.pg_prepared_xacts x ON x.transaction OPERATOR(pg_catalog.=) n.transactionid)
                  ON l.pid IS NULL AND n.pid IS NULL
                     AND n.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction
              LEFT JOIN pg_catalog.pg_inherits i
                  ON i.inhrelid OPERATOR(pg_catalog.=) l.relation AND i.inhparent OPERATOR(pg_catalog.=) r.dedup
              LEFT JOIN pg_catalog.pg_class k ON k.oid OPERATOR(pg_catalog.=) i.inhrelid
              CROSS JOIN LATERAL (
                  SELECT pg_catalog."substring"(pg_catalog.pg_get_expr(k.relpartbound, 0), '[0-9]+')::bigint AS slot) p
         WHERE l.locktype OPERATOR(pg_catalog.=) 'relation' AND l.granted
           AND l.database OPERATOR(pg_catalog.=)
               (SELECT d.oid FROM pg_catalog.pg_database d
                WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
           AND (
               -- A pass goes by a table that is locked,
               l.relation OPERATOR(pg_catalog.=) r.dedup
               AND l.mode OPERATOR(pg_catalog.<>) ALL (ARRAY['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
               -- doesn't retire a generation to which somebody may be writing,
               OR pg_catalog.mod(o.generation OPERATOR(pg_catalog.-) p.slot, c.slots) OPERATOR(pg_catalog.=) 0
               AND o.droppable_at OPERATOR(pg_catalog.<=) pg_catalog.clock_timestamp()
               AND l.mode OPERATOR(pg_catalog.<>) ALL (ARRAY['AccessShareLock', 'RowShareLock', 'ShareLock'])
               -- and doesn't go on to a slot that somebody reads and that is not empty.
               OR pg_catalog.mod(c.current_generation OPERATOR(pg_catalog.+) 1 OPERATOR(pg_catalog.-) p.slot, c.slots)
                   OPERATOR(pg_catalog.=) 0
               AND (c.current_generation OPERATOR(pg_catalog.-) c.oldest_generation)
                   OPERATOR(pg_catalog.<) (c.slots OPERATOR(pg_catalog.-) 1)
               AND s.full_since IS NOT NULL)
         ) l ON true;
COMMENT ON VIEW idem_purge_status IS 'what purging has done to each dedup table, and what keeps it from going on';
COMMENT ON COLUMN idem_purge_status.dedup IS 'the dedup table';
COMMENT ON COLUMN idem_purge_status.turned IS 'how many generations were opened';
COMMENT ON COLUMN idem_purge_status.retired IS 'how many generations were retired and emptied';
COMMENT ON COLUMN idem_purge_status.events_freed IS 'expired events in them';
COMMENT ON COLUMN idem_purge_status.bytes_freed IS 'bytes freed, indexes included';
COMMENT ON COLUMN idem_purge_status.events_moved IS 'unsettled events moved to the current generation';
COMMENT ON COLUMN idem_purge_status.events_given_up IS 'unsettled events forgotten at the end of their unresolved_window';
COMMENT ON COLUMN idem_purge_status.last_error IS 'why the latest pass over this table failed; null = it did not';
COMMENT ON COLUMN idem_purge_status.last_error_at IS 'when it did so first';
COMMENT ON COLUMN idem_purge_status.blocks_done IS 'how many blocks it has scanned';
COMMENT ON COLUMN idem_purge_status.blocks_total IS 'of how many';
COMMENT ON COLUMN idem_purge_status.last_pass IS 'when the worker last came through this database; null = not since the server started';
COMMENT ON COLUMN idem_purge_status.took IS 'how long that pass took';
COMMENT ON COLUMN idem_purge_status.last_change IS 'when something was last done to this table, or failed';
COMMENT ON COLUMN idem_purge_status.oldest_generation IS 'the next one to be emptied; null = there is only the current one';
COMMENT ON COLUMN idem_purge_status.droppable_at IS 'when its last settled event expires';
COMMENT ON COLUMN idem_purge_status.in_the_way IS 'these locks keep the table from being purged, the expired generation from being emptied, or the ring from turning';
COMMENT ON COLUMN idem_purge_status.full_since IS 'since when the ring has no slot to go on to, so that the current generation grows; null = it has';
COMMENT ON COLUMN idem_purge_status.phase IS 'what the worker is at in this table right now; null = nothing';

GRANT SELECT ON idem_policy, idem_tables, idem_generations, idem_purge_status TO PUBLIC;

-- ---------------------------------------------------------------------------------------------------------------------
-- Identity
-- ---------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION idem_key(handler text, event_id text, batch text DEFAULT NULL)
RETURNS uuid LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_key';
COMMENT ON FUNCTION idem_key(text, text, text) IS 'the stored key of an event; its format never changes';

CREATE FUNCTION idem_business_key(VARIADIC parts text[])
RETURNS text LANGUAGE C IMMUTABLE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_business_key';
COMMENT ON FUNCTION idem_business_key(text[]) IS
    'an event_id out of stable fields, for senders without one; different parts never give the same id';

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

-- ---------------------------------------------------------------------------------------------------------------------
-- Signatures
-- ---------------------------------------------------------------------------------------------------------------------

-- One secret or several, one header or all of them. A parameter or literal without a type is taken for text, which never
-- quotes a secret in an error as the input of an array would.

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    header    text,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_header_secret';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, text, text, interval) IS
    'whether a webhook is signed with this secret, by its one header: stripe, github';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    header    text,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_header_secrets';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, text, text[], interval) IS
    'whether a webhook is signed with one of these secrets, by its one header: stripe, github';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secret    text,
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_headers_secret';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, jsonb, text, interval) IS
    'whether a webhook is signed with this secret, by all its headers: standard-webhooks, stripe, github';

CREATE FUNCTION idem_verify_signature(
    scheme    text,
    payload   bytea,
    headers   jsonb,
    secrets   text[],
    tolerance interval DEFAULT '5 minutes')
RETURNS boolean LANGUAGE C VOLATILE PARALLEL SAFE AS 'MODULE_PATHNAME', 'idem_verify_signature_headers_secrets';
COMMENT ON FUNCTION idem_verify_signature(text, bytea, jsonb, text[], interval) IS
    'whether a webhook is signed with one of these secrets, by all its headers: standard-webhooks, stripe, github';
