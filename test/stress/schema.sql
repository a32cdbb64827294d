-- What the stress test's sessions work on: dedup tables of four kinds, a ledger without any unique constraint, a record of
-- every answer, and the deliveries as functions. It knows nothing of how events are remembered, so that the same load runs
-- on idem, on idem without its gate, and on naive functions of the same names (naive.sql).

CREATE SCHEMA stress;

-- Events of a table repeat after `cycle` events, so that they come back when they are forgotten; null = they never repeat.
CREATE TABLE stress.dedup_table (
    name        text PRIMARY KEY,
    mode        text NOT NULL,
    hot_window  interval NOT NULL,
    cold_window interval NOT NULL,
    slots       integer NOT NULL,
    cycle       integer
);
INSERT INTO stress.dedup_table VALUES
    ('brief', 'transaction', '100 ms', '300 ms', 8, 40),        -- forgets within a few turns of the ring
    ('sparse', 'transaction', '100 ms', '600 ms', 8, 20),       -- generations with one event or none, so retired at once
    ('wide', 'transaction', '100 ms', '2 s', 64, 100),          -- dozens of sealed generations
    ('leased', 'lease', '150 ms', '1 s', 48, 40),               -- leases which run out and are taken over
    ('kept', 'transaction', '15 minutes', '30 days', 64, NULL); -- forgets nothing: one effect an event, for good
SELECT idem_create_table(name, hot_window, cold_window, mode, slots) FROM stress.dedup_table;

-- Constraints are checked after the look for an event and before the write, so this is a pause where it hurts most. The share of
-- the writes and the longest pause in seconds are psql's variables. A user's function would not be in order: this one passes
-- for the server's own, and takes a column so that nobody evaluates it beforehand.
CREATE FUNCTION stress.pause(event_id text, share float8, longest float8) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF random() < share THEN
        PERFORM pg_sleep(longest * random());
    END IF;
    RETURN true;
END $$;
UPDATE pg_proc SET oid = 16001 WHERE proname = 'pause' AND pronamespace = 'stress'::regnamespace;
SELECT format('ALTER TABLE %I ADD CONSTRAINT pause CHECK (stress.pause(event_id, %s, %s))',
              name, :pauses, :longest_pause) FROM stress.dedup_table \gexec

CREATE TYPE stress.event AS (dedup regclass, handler text, event_id text);

-- One row per effect, as a careless user's ledger has it.
CREATE TABLE stress.ledger (
    entry    bigint GENERATED ALWAYS AS IDENTITY,
    dedup    regclass NOT NULL,
    handler  text NOT NULL,
    event_id text NOT NULL
);

-- What was remembered of an effect's event by the transaction that settled it.
CREATE TABLE stress.remembered (
    entry         bigint NOT NULL,
    claim_attempt integer NOT NULL,
    attempt       integer NOT NULL,
    first_seen_at timestamptz NOT NULL,
    claimed_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL
);

-- What was answered, as far as the transaction that was told committed.
CREATE TABLE stress.answer (
    request       text NOT NULL,
    dedup         regclass NOT NULL,
    handler       text NOT NULL,
    event_id      text NOT NULL,
    outcome       text NOT NULL,
    attempt       integer,
    first_seen_at timestamptz,
    asked_at      timestamptz NOT NULL,
    answered_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    wait          interval,
    isolation     text NOT NULL DEFAULT current_setting('transaction_isolation')
);

-- Prepared transactions that another session has ended.
CREATE TABLE stress.prepared (gid text, committed boolean);

CREATE FUNCTION stress.event_number() RETURNS bigint LANGUAGE sql AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 20)::bigint $$;

CREATE TABLE stress.run (first_event bigint, last_event bigint);
INSERT INTO stress.run VALUES (stress.event_number() - 40, NULL);

-- Each table has its turn for 50 ms, so that deliveries and turns of the ring meet; the sparse one has pauses between its turns.
CREATE FUNCTION stress.pick_table(VARIADIC names text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    number bigint := stress.event_number();
    turn   text := CASE WHEN number / 8 % 4 = 0 AND number % 2 = 0 THEN 'sparse'
                        ELSE (ARRAY['brief', 'wide', 'leased', 'kept'])[1 + number % 4] END;
BEGIN
    RETURN CASE WHEN turn = ANY (names || 'sparse'::text) AND random() < 0.8 THEN turn
                ELSE names[1 + floor(cardinality(names) * random())] END;
END $$;

-- Lets sessions meet at the moment when the event changes, as bursts of deliveries do.
CREATE FUNCTION stress.meet() RETURNS void LANGUAGE sql AS
    $$ SELECT pg_sleep((stress.event_number() + 1) / 20.0 - extract(epoch FROM clock_timestamp())) $$;

-- The newest event, which all sessions deliver at once and which changes every 50 ms, or one of the 40 before it.
CREATE FUNCTION stress.pick(table_name text) RETURNS stress.event LANGUAGE plpgsql AS $$
DECLARE
    cycle  integer := (SELECT t.cycle FROM stress.dedup_table t WHERE t.name = table_name);
    number bigint := stress.event_number();
BEGIN
    IF random() < 0.4 THEN
        number := number - floor(40 * random() ^ 3);
    END IF;
    IF table_name = 'sparse' THEN
        number := number / 8;
    END IF;
    RETURN (table_name::regclass, CASE WHEN random() < 0.8 THEN 'book' ELSE 'mail' END,
            'evt_' || CASE WHEN cycle IS NULL THEN number ELSE number % cycle END);
END $$;

CREATE FUNCTION stress.note(event stress.event, request text, claim idem_claim, asked_at timestamptz, wait interval DEFAULT NULL)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO stress.answer (request, dedup, handler, event_id, outcome, attempt, first_seen_at, asked_at, wait)
    VALUES (request, event.dedup, event.handler, event.event_id, claim.outcome, claim.attempt, claim.first_seen_at, asked_at, wait)
$$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Steps of a delivery
-- ---------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION stress.acquire(event stress.event, request text DEFAULT 'acquire', owner text DEFAULT NULL,
                               hot_window interval DEFAULT NULL) RETURNS idem_claim LANGUAGE plpgsql AS $$
DECLARE
    asked_at timestamptz := clock_timestamp();
    wait     interval := CASE WHEN random() < 0.2 THEN random() * interval '30 ms' + interval '1 ms' END;
    claim    idem_claim;
BEGIN
    claim := idem_acquire(event.dedup, event.handler, event.event_id, owner => owner, wait => wait, hot_window => hot_window,
        fingerprint => CASE WHEN request = 'acquire forged' THEN idem_fingerprint('forged'::text)
                            WHEN random() < 0.8 THEN idem_fingerprint(event.event_id) END);
    PERFORM stress.note(event, request, claim, asked_at, wait);
    RETURN claim;
END $$;

-- The business write.
CREATE FUNCTION stress.book(event stress.event) RETURNS bigint LANGUAGE sql AS
    $$ INSERT INTO stress.ledger (dedup, handler, event_id) VALUES (event.dedup, event.handler, event.event_id) RETURNING entry $$;

CREATE FUNCTION stress.remember(event stress.event, booked bigint, claim_attempt integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO stress.remembered
    SELECT booked, claim_attempt, r.attempt, r.first_seen_at, COALESCE(r.claimed_at, r.first_seen_at), r.expires_at
    FROM idem_lookup(event.dedup, event.handler, event.event_id) r WHERE r.key IS NOT NULL
$$;

-- Business write and settling. In the transaction that acquired the attempt may be left out.
CREATE FUNCTION stress.settle(event stress.event, claim_attempt integer, attempt integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    booked bigint := stress.book(event);
BEGIN
    PERFORM idem_commit(event.dedup, event.handler, event.event_id, attempt => attempt,
                        result => CASE WHEN random() < 0.3 THEN jsonb_build_object('entry', booked) END);
    PERFORM stress.remember(event, booked, claim_attempt);
END $$;

CREATE FUNCTION stress.release(event stress.event, request text, error text, attempt integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    asked_at timestamptz := clock_timestamp();
    claim    idem_claim;
BEGIN
    claim := idem_release(event.dedup, event.handler, event.event_id, error => error, attempt => attempt);
    PERFORM stress.note(event, request, claim, asked_at);
END $$;

-- Claim and settle in one statement with the business write, in the forms that README recommends. What is not final is an
-- error, to be answered 503; some don't wait for it.
CREATE FUNCTION stress.patience() RETURNS interval LANGUAGE sql AS
    $$ SELECT CASE WHEN random() < 0.5 THEN random() * interval '30 ms' ELSE '1 second' END $$;

-- With the answer for the sender.
CREATE FUNCTION stress.accept(event stress.event) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    asked    timestamptz := clock_timestamp();
    claim    idem_claim;
    accepted integer;
    booked   bigint;
BEGIN
    WITH accept AS MATERIALIZED (
        SELECT * FROM idem_accept(event.dedup, event.handler, event.event_id, fingerprint => idem_fingerprint(event.event_id),
                                  wait => stress.patience())
    ), booking AS (
        INSERT INTO stress.ledger (dedup, handler, event_id)
        SELECT event.dedup, event.handler, event.event_id FROM accept WHERE acquired RETURNING entry
    ), noting AS (
        INSERT INTO stress.answer (request, dedup, handler, event_id, outcome, attempt, first_seen_at, asked_at)
        SELECT 'accept', event.dedup, event.handler, event.event_id, outcome, attempt, first_seen_at, asked FROM accept
    )
    SELECT attempt, (SELECT entry FROM booking) INTO accepted, booked FROM accept;
    IF booked IS NOT NULL THEN
        PERFORM stress.remember(event, booked, accepted);
    END IF;
EXCEPTION WHEN SQLSTATE 'ID004' THEN
    claim.outcome := 'busy';
    PERFORM stress.note(event, 'accept refused', claim, asked);
END $$;

-- INSERT 0 0 is all that the receiver sees, and answers 200 to.
CREATE FUNCTION stress.accept_unseen(event stress.event, in_from boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    asked  timestamptz := clock_timestamp();
    claim  idem_claim;
    booked bigint;
BEGIN
    IF in_from THEN
        INSERT INTO stress.ledger (dedup, handler, event_id) SELECT event.dedup, event.handler, event.event_id
        FROM idem_accept(event.dedup, event.handler, event.event_id, wait => stress.patience()) WHERE acquired RETURNING entry INTO booked;
    ELSE
        INSERT INTO stress.ledger (dedup, handler, event_id) SELECT event.dedup, event.handler, event.event_id
        WHERE (idem_accept(event.dedup, event.handler, event.event_id, wait => stress.patience())).acquired RETURNING entry INTO booked;
    END IF;
    claim.outcome := 'duplicate';
    IF booked IS NOT NULL THEN
        SELECT 'acquired', attempt, first_seen_at INTO claim.outcome, claim.attempt, claim.first_seen_at
        FROM idem_lookup(event.dedup, event.handler, event.event_id);
        PERFORM stress.remember(event, booked, claim.attempt);
    END IF;
    PERFORM stress.note(event, CASE WHEN booked IS NULL THEN 'INSERT 0 0' ELSE 'accept' END, claim, asked);
EXCEPTION WHEN SQLSTATE 'ID004' THEN
    claim.outcome := 'busy';
    PERFORM stress.note(event, 'accept refused', claim, asked);
END $$;

-- Runs a step in a savepoint and rolls it back.
CREATE FUNCTION stress.settle_in_vain(event stress.event, claim_attempt integer, attempt integer DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM stress.settle(event, claim_attempt, attempt);
    RAISE EXCEPTION SQLSTATE 'ST001';
EXCEPTION WHEN SQLSTATE 'ST001' THEN
END $$;

-- Delivers in a savepoint and rolls it back; a forged event must not be claimed at all, so its claim ends the same way.
CREATE FUNCTION stress.deliver_in_vain(event stress.event, request text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    claim idem_claim;
BEGIN
    claim := stress.acquire(event, request);
    IF claim.acquired THEN
        IF request = 'acquire' AND event.dedup <> 'leased'::regclass THEN
            PERFORM stress.settle(event, claim.attempt);
        END IF;
        RAISE EXCEPTION SQLSTATE 'ST001';
    END IF;
EXCEPTION WHEN SQLSTATE 'ST001' THEN
    PERFORM stress.note(event, 'claim rolled back', claim, clock_timestamp());
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Deliveries
-- ---------------------------------------------------------------------------------------------------------------------

-- One delivery where claim, work and settling share the transaction.
CREATE FUNCTION stress.deliver(table_name text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event  stress.event := stress.pick(table_name);
    chance float8 := random();
    claim  idem_claim;
BEGIN
    IF chance < 0.04 THEN
        PERFORM stress.deliver_in_vain(event, 'acquire forged');
        RETURN;
    ELSIF chance < 0.12 THEN
        PERFORM stress.deliver_in_vain(event, 'acquire');
    END IF;

    claim := stress.acquire(event);
    IF NOT claim.acquired THEN
        RETURN;
    END IF;
    IF random() < 0.3 THEN
        PERFORM pg_sleep(CASE WHEN random() < 0.3 THEN 0.1 ELSE 0.006 END * random());
    END IF;
    chance := random();
    IF chance < 0.06 THEN
        PERFORM stress.release(event, 'give back', NULL);
    ELSIF chance < 0.12 THEN
        PERFORM stress.release(event, 'fail', 'no such wallet');
    ELSIF chance < 0.18 THEN
        PERFORM stress.release(event, 'fail', 'no such wallet');
        claim := stress.acquire(event);
        PERFORM stress.settle(event, claim.attempt);
    ELSE
        IF chance < 0.28 THEN
            PERFORM stress.settle_in_vain(event, claim.attempt);
        END IF;
        PERFORM stress.settle(event, claim.attempt);
    END IF;
END $$;

-- Several in one transaction, in whatever order of keys.
CREATE FUNCTION stress.deliver_some(deliveries integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..deliveries LOOP
        PERFORM stress.deliver(stress.pick_table('brief', 'wide', 'kept'));
    END LOOP;
END $$;

-- The work was rolled back together with its claim; what is left to say is that it failed.
CREATE FUNCTION stress.record_failure(table_name text) RETURNS void LANGUAGE sql AS
    $$ SELECT stress.release(stress.pick(table_name), 'record failure', 'the work was rolled back') $$;

-- Claims for longer than this transaction, and sometimes for less time than the work takes.
CREATE FUNCTION stress.take_lease(OUT acquired integer, OUT handler text, OUT event_id text, OUT owner text,
                                  OUT attempt integer, OUT taken_at timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    event stress.event := stress.pick('leased');
    claim idem_claim;
BEGIN
    handler := event.handler;
    event_id := event.event_id;
    owner := gen_random_uuid();
    IF random() < 0.05 THEN
        PERFORM stress.deliver_in_vain(event, CASE WHEN random() < 0.5 THEN 'acquire' ELSE 'acquire forged' END);
    END IF;
    taken_at := clock_timestamp();
    claim := stress.acquire(event, owner => owner, hot_window => (0.02 + 0.13 * random()) * interval '1 s');
    acquired := claim.acquired::integer;
    attempt := COALESCE(claim.attempt, 0);
END $$;

-- A token is unique as long as its event is remembered, so a holder who may have outlived that must give up.
CREATE FUNCTION stress.is_too_late(taken_at timestamptz) RETURNS boolean LANGUAGE sql AS
    $$ SELECT clock_timestamp() > taken_at + cold_window / 2 FROM stress.dedup_table WHERE name = 'leased' $$;

-- While it works: a heartbeat, or a second acquire, as after an acquire whose COMMIT was never heard of. The claim may be lost
-- by now, which is for the settling to find out.
CREATE FUNCTION stress.hold_lease(event stress.event, owner text, attempt integer, taken_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    asked_at timestamptz := clock_timestamp();
    chance   float8 := random();
    claim    idem_claim;
BEGIN
    IF stress.is_too_late(taken_at) THEN
        RETURN;
    ELSIF chance < 0.25 THEN
        PERFORM idem_extend(event.dedup, event.handler, event.event_id, attempt => attempt);
        claim.outcome := 'acquired';
        claim.attempt := attempt;
        PERFORM stress.note(event, 'extend', claim, asked_at);
    ELSIF chance < 0.5 THEN
        claim := idem_acquire(event.dedup, event.handler, event.event_id, owner => owner);
        IF claim.acquired AND claim.attempt <> attempt THEN
            -- The lease had run out: a claim of its own, which nobody will settle.
            PERFORM stress.note(event, 'acquire', claim, asked_at);
        ELSE
            PERFORM stress.note(event, 'acquire as owner', claim, asked_at);
        END IF;
    END IF;
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    claim.outcome := 'busy';
    PERFORM stress.note(event, 'lease lost', claim, asked_at);
END $$;

-- The second transaction.
CREATE FUNCTION stress.finish_lease(event stress.event, attempt integer, taken_at timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    asked_at timestamptz := clock_timestamp();
    chance   float8 := random();
    claim    idem_claim;
BEGIN
    IF stress.is_too_late(taken_at) THEN
        RETURN;
    ELSIF chance < 0.06 THEN
        PERFORM stress.release(event, 'give back', NULL, attempt);
    ELSIF chance < 0.12 THEN
        PERFORM stress.release(event, 'fail', 'phone is off', attempt);
    ELSE
        IF chance < 0.2 THEN
            PERFORM stress.settle_in_vain(event, attempt, attempt);
        END IF;
        PERFORM stress.settle(event, attempt, attempt);
    END IF;
EXCEPTION WHEN SQLSTATE 'ID001' THEN
    -- The savepoint has taken the ledger's row back.
    claim.outcome := 'busy';
    PERFORM stress.note(event, 'lease lost', claim, asked_at);
END $$;

-- ---------------------------------------------------------------------------------------------------------------------
-- Afterwards
-- ---------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION stress.all_events() RETURNS SETOF stress.event LANGUAGE sql AS $$
    SELECT t.name::regclass, h.handler, 'evt_' || number
    FROM stress.run, stress.dedup_table t, unnest(ARRAY['book', 'mail']) AS h(handler),
         generate_series(CASE WHEN t.cycle IS NULL THEN first_event ELSE 0 END,
                         CASE WHEN t.cycle IS NULL THEN last_event ELSE t.cycle - 1 END) AS number
$$;

-- Redelivers everything until it is answered for good, as senders do.
CREATE PROCEDURE stress.deliver_rest() LANGUAGE plpgsql AS $$
DECLARE
    event    stress.event;
    claim    idem_claim;
    asked_at timestamptz;
BEGIN
    FOR event IN SELECT * FROM stress.all_events() LOOP
        FOR try IN 1..20 LOOP
            asked_at := clock_timestamp();
            claim := idem_acquire(event.dedup, event.handler, event.event_id, wait => '1 s',
                                  fingerprint => idem_fingerprint(event.event_id));
            EXIT WHEN claim.outcome <> 'busy';
        END LOOP;
        PERFORM stress.note(event, 'acquire', claim, asked_at);
        IF claim.acquired THEN
            PERFORM stress.settle(event, claim.attempt);
        ELSIF claim.outcome <> 'duplicate' THEN
            PERFORM stress.note(event, 'never answered', claim, asked_at);
        END IF;
        COMMIT;
    END LOOP;
END $$;
