-- Types: states, outcomes, the row of a dedup table, answers.

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
    together       boolean,
    handler        text COLLATE "C",
    event_id       text COLLATE "C",
    batch          text COLLATE "C",
    fingerprint    bytea,
    owner          text COLLATE "C",
    ordering       text COLLATE "C",
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
COMMENT ON COLUMN idem_event.claimed_at IS 'when the latest claim was made; null = first_seen_at; -infinity = not since it was received again';
COMMENT ON COLUMN idem_event.claimable_at IS 'end of the lease, or time of the next try; infinity = dead; -infinity = received behind an earlier one of its ordering key; null = done';
COMMENT ON COLUMN idem_event.settled_at IS 'when a done event was settled; null = first_seen_at';
COMMENT ON COLUMN idem_event.expires_at IS 'when the event is forgotten';
COMMENT ON COLUMN idem_event.failures IS 'failed tries so far, run-out leases among them';
COMMENT ON COLUMN idem_event.slot IS 'partition which holds the row';
COMMENT ON COLUMN idem_event.together IS 'true: idem_due handed the running claim out together with others, so a run-out does not count; else null';
COMMENT ON COLUMN idem_event.handler IS 'consumer of the event';
COMMENT ON COLUMN idem_event.event_id IS 'the sender''s id of the event, or idem_business_key() of its stable fields';
COMMENT ON COLUMN idem_event.batch IS 'names a deliberate resend; null = none';
COMMENT ON COLUMN idem_event.fingerprint IS 'idem_fingerprint() of what must not differ between deliveries; null = not checked';
COMMENT ON COLUMN idem_event.owner IS 'the caller''s own token of the latest claim';
COMMENT ON COLUMN idem_event.ordering IS 'idem_due hands out the events of one ordering key one after another; null = in any order';
COMMENT ON COLUMN idem_event.result IS 'what idem_commit stored, returned to duplicates';
COMMENT ON COLUMN idem_event.error IS 'why the latest try failed';
COMMENT ON COLUMN idem_event.payload IS 'payload of an unsettled event; dropped when it is done';
COMMENT ON COLUMN idem_event.extra IS 'reserved for later versions';

CREATE TYPE idem_claim AS (
    acquired       boolean,
    outcome        idem_outcome,
    attempt        integer,
    first_seen_at  timestamptz,
    retry_after    integer,
    result         jsonb,
    error          text
);
COMMENT ON TYPE idem_claim IS 'answer of idem_acquire, idem_accept and idem_release';
COMMENT ON COLUMN idem_claim.acquired IS 'true: the caller holds the claim and does the work';
COMMENT ON COLUMN idem_claim.outcome IS 'acquired, or why not';
COMMENT ON COLUMN idem_claim.attempt IS 'fencing token; pass it to idem_commit, idem_release and idem_extend from another transaction';
COMMENT ON COLUMN idem_claim.first_seen_at IS 'when this event was first claimed or recorded';
COMMENT ON COLUMN idem_claim.retry_after IS 'whole seconds to wait before the next try, rounded up; null = do not retry';
COMMENT ON COLUMN idem_claim.result IS 'duplicate: what idem_commit stored';
COMMENT ON COLUMN idem_claim.error IS 'failed or dead event: why its latest try failed';

CREATE TYPE idem_event_claim AS (
    event_id       text,
    acquired       boolean,
    outcome        idem_outcome,
    attempt        integer,
    first_seen_at  timestamptz,
    retry_after    integer,
    result         jsonb,
    error          text
);
COMMENT ON TYPE idem_event_claim IS 'answer of idem_acquire_many and idem_release_many for one event: its id, and what idem_claim has';
COMMENT ON COLUMN idem_event_claim.event_id IS 'the event, as it was given';
COMMENT ON COLUMN idem_event_claim.outcome IS 'acquired, or why not; duplicate also for the second of two equal ids';

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
COMMENT ON COLUMN idem_due_event.attempt IS 'fencing token; pass it to idem_commit, idem_release and idem_extend from another transaction';
COMMENT ON COLUMN idem_due_event.payload IS 'its payload, if one was given';
COMMENT ON COLUMN idem_due_event.error IS 'why the latest try failed; null = there was none';

CREATE TYPE idem_event_lease AS (
    event_id       text,
    extended       boolean,
    lease_until    timestamptz,
    error          text
);
COMMENT ON TYPE idem_event_lease IS 'answer of idem_extend_many for one event';
COMMENT ON COLUMN idem_event_lease.event_id IS 'the event, as it was given';
COMMENT ON COLUMN idem_event_lease.extended IS 'true: its claim is the caller''s still';
COMMENT ON COLUMN idem_event_lease.lease_until IS 'until when; null in transaction mode, or if it is not the caller''s any more';
COMMENT ON COLUMN idem_event_lease.error IS 'why it is not: the SQLSTATE which idem_extend would raise, ID001 or ID002';
