-- Tables of the benchmark: what a user would write by hand, and the same for idem.

-- The usual hand-written dedup table. Its text key is kept twice: with byte-wise comparison, the fastest there is, and
-- with a linguistic one, which is what a database with a language's locale gives to whoever does not think of it.
CREATE TABLE processed_event_c (
    handler    text COLLATE "C",
    event_id   text COLLATE "C",
    status     text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    result     jsonb,
    PRIMARY KEY (handler, event_id)
);
CREATE INDEX ON processed_event_c (expires_at);

CREATE TABLE processed_event_en (
    handler    text COLLATE "en-US-x-icu",
    event_id   text COLLATE "en-US-x-icu",
    status     text NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    result     jsonb,
    PRIMARY KEY (handler, event_id)
);
CREATE INDEX ON processed_event_en (expires_at);

-- One more like the first: compared with it, it shows what differences this machine can resolve.
CREATE TABLE processed_event_twin (LIKE processed_event_c INCLUDING ALL);

-- The leanest hand-written claim: a hash as key, nothing that tells a human which event it was, nothing to purge by.
CREATE TABLE claimed_key (
    key        uuid PRIMARY KEY,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

SELECT idem_create_table(name) FROM unnest(
    ARRAY['webhook', 'webhook_expression', 'webhook_accept', 'webhook_accept_expression']) name;

-- A plan made for an empty table reads it from end to end, and a prepared statement keeps its plan: none starts empty.
INSERT INTO processed_event_c
    SELECT 'charge-wallet', 'evt_old_' || i, 'done', clock_timestamp(), clock_timestamp() + '30 days'
    FROM generate_series(1, 10000) i;
INSERT INTO processed_event_en SELECT * FROM processed_event_c;
INSERT INTO processed_event_twin SELECT * FROM processed_event_c;
INSERT INTO claimed_key SELECT md5(event_id)::uuid, created_at, expires_at FROM processed_event_c;
SELECT count(*) FROM generate_series(1, 10000) i,
    unnest(ARRAY['webhook', 'webhook_expression', 'webhook_accept', 'webhook_accept_expression']::regclass[]) dedup,
    idem_accept(dedup, 'charge-wallet', 'evt_old_' || i);

-- The same tables with :known settled events (variable of psql). Indexes built afterwards are filled as random inserts would leave them.
CREATE TABLE processed_event_c_full (LIKE processed_event_c);
CREATE TABLE processed_event_en_full (LIKE processed_event_en);
INSERT INTO processed_event_c_full
    SELECT 'charge-wallet', 'evt_' || left(md5(i::text), 24), 'done', clock_timestamp(), clock_timestamp() + '30 days'
    FROM generate_series(1, :known) i;
INSERT INTO processed_event_en_full SELECT * FROM processed_event_c_full;
ALTER TABLE processed_event_c_full ADD PRIMARY KEY (handler, event_id) WITH (fillfactor = 70);
ALTER TABLE processed_event_en_full ADD PRIMARY KEY (handler, event_id) WITH (fillfactor = 70);
CREATE INDEX ON processed_event_c_full (expires_at);
CREATE INDEX ON processed_event_en_full (expires_at);

SELECT idem_create_table('webhook_full');
SELECT count(*) FROM generate_series(1, :known) i,
    idem_accept('webhook_full', 'charge-wallet', 'evt_' || left(md5(i::text), 24)) a WHERE a.acquired;

-- And spread over four generations of a ring.
SELECT idem_create_table('webhook_ring');
SELECT count(*) FROM generate_series(1, :known / 4) i,
    idem_accept('webhook_ring', 'charge-wallet', 'evt_' || left(md5(i::text), 24)) a WHERE a.acquired;
CALL idem_rotate('webhook_ring');
SELECT count(*) FROM generate_series(:known / 4 + 1, :known / 2) i,
    idem_accept('webhook_ring', 'charge-wallet', 'evt_' || left(md5(i::text), 24)) a WHERE a.acquired;
CALL idem_rotate('webhook_ring');
SELECT count(*) FROM generate_series(:known / 2 + 1, :known * 3 / 4) i,
    idem_accept('webhook_ring', 'charge-wallet', 'evt_' || left(md5(i::text), 24)) a WHERE a.acquired;
CALL idem_rotate('webhook_ring');
SELECT count(*) FROM generate_series(:known * 3 / 4 + 1, :known) i,
    idem_accept('webhook_ring', 'charge-wallet', 'evt_' || left(md5(i::text), 24)) a WHERE a.acquired;

-- The business side of the transactions that pgbench runs.
CREATE TABLE ledger (event_id text NOT NULL, cents bigint NOT NULL);
CREATE TABLE wallet (id int PRIMARY KEY, balance bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO wallet SELECT i, 0 FROM generate_series(1, 10000) i;

-- Hint bits and statistics, so that no measurement sets or gathers them.
VACUUM ANALYZE;
