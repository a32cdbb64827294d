-- idem_receive remembers an event before anybody works on it; idem_due gives out what waits to be worked on: received
-- events, retries that are due, and leases that ran out, those due for longest first.
CREATE SCHEMA receive_and_due;
SET search_path = receive_and_due, public;
SET client_min_messages = warning;

-- Committed rows in three generations, the oldest of which is then emptied, so that what it held has been moved. Times
-- are set by hand, so that nobody waits for them.
CREATE PROCEDURE fill(dedup regclass, prefix text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM idem_receive(dedup, 'send', prefix || 'received', payload => '{"n": 1}');
    PERFORM idem_receive(dedup, 'send', prefix || 'received', 'may', payload => '{"n": 2}');
    PERFORM idem_acquire(dedup, 'send', prefix || e, payload => '{"n": 3}')
        FROM unnest(ARRAY['running', 'run out', 'run out at last', 'failed', 'failed, not due', 'dead', 'given back',
                          'given back for later', 'expired', 'done']) e;
    PERFORM idem_release(dedup, 'send', prefix || e, error => 'no answer')
        FROM unnest(ARRAY['failed', 'failed, not due', 'dead', 'expired']) e;
    PERFORM idem_release(dedup, 'send', prefix || 'given back');
    PERFORM idem_release(dedup, 'send', prefix || 'given back for later', retry_after => '1 hour');
    PERFORM idem_commit(dedup, 'send', prefix || 'done', result => '1');
    EXECUTE format($sql$
        UPDATE %s SET
            state = CASE WHEN event_id LIKE '%%dead' THEN 'dead' ELSE state END,
            failures = CASE WHEN event_id LIKE '%%at last' THEN 9 ELSE failures END,
            claimable_at = CASE WHEN event_id LIKE '%%dead' THEN 'infinity'
                                WHEN event_id LIKE '%%not due' THEN now() + interval '1 hour'
                                WHEN event_id LIKE '%%run out%%' THEN now() ELSE claimable_at END,
            expires_at = CASE WHEN event_id LIKE '%%expired' THEN now() ELSE expires_at END
        WHERE event_id LIKE %L$sql$, dedup, prefix || '%');
END $$;
SELECT idem_create_table('outbox', mode => 'lease', generations => 4) \g /dev/null
CALL fill('outbox', 'moved ');
CALL idem_rotate('outbox');
CALL fill('outbox', 'sealed ');
CALL idem_rotate('outbox');
CALL fill('outbox', '');
UPDATE outbox SET expires_at = now() WHERE event_id = 'moved done';
CALL idem_purge('outbox');
CALL idem_rotate('outbox');
SELECT oldest_generation AS oldest FROM idem_control WHERE dedup = 'outbox'::regclass \gset
UPDATE outbox SET claimable_at = now() - interval '1 day' WHERE event_id = 'sealed failed';
UPDATE outbox SET claimable_at = now() - interval '1 hour' WHERE event_id = 'given back';
UPDATE outbox SET claimable_at = now() - interval '1 minute' WHERE event_id = 'moved run out';
CREATE TABLE slots AS SELECT event_id, batch, slot FROM outbox;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('mixed', mode => 'lease');
    PERFORM idem_accept('inbox', 'book', e, result => '1', fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['done', 'expired']) e;
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
END $$;

-- A few events that are due among many that are settled, in a sealed generation and in the current one.
SELECT idem_create_table('big', generations => 3) \g /dev/null
SELECT FROM generate_series(1, 10000) i, idem_accept('big', 'book', i::text), idem_receive('big', 'send', 'sealed ' || i % 9)
\g /dev/null
CALL idem_rotate('big');
SELECT FROM generate_series(1, 10000) i, idem_accept('big', 'book', i || '+'), idem_receive('big', 'send', 'current ' || i % 9)
\g /dev/null

-- One event kills its worker each time; a worker works in turn.
SELECT idem_create_table('poison', mode => 'lease') \g /dev/null
SELECT idem_set_policy('poison', max_attempts => 3) \g /dev/null
SELECT idem_receive('poison', 'send', i || CASE i WHEN 4 THEN ' poison' ELSE '' END) FROM generate_series(1, 10) i \g /dev/null
CREATE TABLE sent (event_id text);
CREATE PROCEDURE work_and_die() LANGUAGE plpgsql AS $$
DECLARE
    due record;
BEGIN
    FOR i IN 1 .. 20 LOOP
        FOR due IN SELECT * FROM idem_due('poison', 'send', 100) LOOP
            EXIT WHEN due.event_id LIKE '%poison';
            INSERT INTO sent VALUES (due.event_id);
            PERFORM idem_commit('poison', 'send', due.event_id, attempt => due.attempt);
        END LOOP;
        COMMIT;
        -- its worker is dead, and time goes on
        UPDATE poison SET claimable_at = now() WHERE state = 'processing';
        COMMIT;
    END LOOP;
END $$;
CALL work_and_die();

BEGIN;
SELECT plan(107);

-- Received

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,,,,)', 'received: it is new')
FROM idem_receive('inbox', 'book', 'e', payload => '{"cents": 5}', fingerprint => idem_fingerprint('A'::text));
SELECT is(ROW(state, attempt, failures, payload, claimable_at = first_seen_at, expires_at - claimable_at, owner)::text,
    '(pending,0,0,"{""cents"": 5}",t,"365 days",)', 'it waits, with its payload')
FROM inbox WHERE event_id = 'e';
CREATE TEMP VIEW stored AS SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax) AS version FROM inbox;
CREATE TEMP TABLE before AS TABLE stored;
SELECT is(ROW(acquired, outcome, attempt, first_seen_at IS NOT NULL, retry_after, result, error)::text,
    '(f,duplicate,,t,,,)', 'again: a duplicate')
FROM idem_receive('inbox', 'book', 'e', payload => '{"cents": 5}', fingerprint => idem_fingerprint('A'::text));
SELECT is(outcome, 'conflict', 'with another fingerprint: a conflict')
FROM idem_receive('inbox', 'book', 'e', fingerprint => idem_fingerprint('B'::text));
SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'what is done is done') FROM idem_receive('inbox', 'book', 'done');
SELECT is(outcome, 'conflict', 'and a conflict')
FROM idem_receive('inbox', 'book', 'done', fingerprint => idem_fingerprint('B'::text));
SELECT is(outcome, 'stale', 'what is too old is stale')
FROM idem_receive('inbox', 'book', 'old', occurred_at => '2000-01-01');
SELECT is(outcome, 'stale', 'what is forgotten too')
FROM idem_receive('inbox', 'book', 'expired', occurred_at => '2000-01-01');
SELECT set_eq('TABLE stored', 'TABLE before', 'nothing of it is written');
SELECT is(outcome, 'duplicate', 'what somebody works on') FROM idem_receive('outbox', 'send', 'running', payload => '9');
SELECT is(outcome, 'duplicate', 'what has failed') FROM idem_receive('outbox', 'send', 'failed', payload => '9');
SELECT is(ROW(acquired, outcome, error)::text, '(f,dead,"no answer")', 'what was given up')
FROM idem_receive('outbox', 'send', 'dead', payload => '9');
SELECT is(payload, '{"n": 3}', 'keep what they have') FROM outbox WHERE event_id IN ('running', 'failed', 'dead');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'what was forgotten is new, its attempts go on')
FROM idem_receive('inbox', 'book', 'expired', payload => '7');
SELECT is(ROW(state, attempt, failures, result, payload)::text, '(pending,1,0,,7)', 'and nothing else of it is left')
FROM inbox WHERE event_id = 'expired';

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'who acquires it has the first attempt')
FROM idem_acquire('inbox', 'book', 'e');
SELECT is(outcome, 'backoff', 'which fails') FROM idem_release('inbox', 'book', 'e', error => 'no');
SELECT is(ROW(state, attempt, failures, payload)::text, '(failed,1,1,"{""cents"": 5}")', 'its payload is still there')
FROM inbox WHERE event_id = 'e';
SELECT is(attempt, 2, 'the next attempt') FROM idem_acquire('inbox', 'book', 'e');
SELECT idem_commit('inbox', 'book', 'e') \g /dev/null
SELECT is(ROW(state, attempt, payload)::text, '(done,2,)', 'succeeds, and the payload goes') FROM inbox WHERE event_id = 'e';
SELECT idem_receive('inbox', 'book', 'accepted', payload => '1') \g /dev/null
SELECT is(ROW(acquired, attempt)::text, '(t,1)', 'what was received may be accepted')
FROM idem_accept('inbox', 'book', 'accepted', result => '2');
SELECT is(ROW(state, result, payload)::text, '(done,2,)', 'and is done') FROM inbox WHERE event_id = 'accepted';

-- Due

SELECT is_empty($$SELECT FROM idem_due('inbox', 'send')$$, 'another handler''s are not due for this one');
SELECT is(ROW(handler, event_id, batch, attempt, failures, payload, error)::text, '(book,expired,,2,0,7,)',
    'in transaction mode: what waits')
FROM idem_due('inbox');
SELECT is_empty($$SELECT FROM idem_due('inbox')$$, 'once');
SELECT is(outcome, 'busy', 'it is claimed') FROM idem_acquire('inbox', 'book', 'expired');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'expired')$$, 'to be settled by the transaction');
SELECT is_empty($$SELECT FROM idem_due('inbox')$$, 'after which it is not due');

SELECT cmp_ok(:oldest, '>', 0, 'the oldest generation has been emptied');
SELECT cmp_ok(count(DISTINCT slot), '=', 2::bigint, 'there are events in sealed generations') FROM slots;
CREATE TEMP TABLE expected AS
SELECT handler, event_id, batch, attempt + 1 AS attempt,
       failures + CASE WHEN event_id LIKE '%run out' THEN 1 ELSE 0 END AS failures, first_seen_at, payload, error
FROM outbox
WHERE event_id LIKE '%received' OR event_id LIKE '%run out' OR event_id LIKE '%failed' OR event_id LIKE '%given back';
CREATE TEMP TABLE first AS SELECT * FROM idem_due('outbox', max_events => 3);
SELECT results_eq('SELECT event_id FROM first', ARRAY['sealed failed', 'given back'],
    'what has been due for longest comes first, of whatever generation and kind, before the first whose lease ran out');
INSERT INTO first SELECT * FROM idem_due('outbox', max_events => 3);
SELECT results_eq('SELECT event_id FROM first OFFSET 2', ARRAY['moved run out'], 'which comes alone');
CREATE TEMP TABLE rest (LIKE first);
DO $$
BEGIN
    FOR i IN 1 .. 20 LOOP
        INSERT INTO rest SELECT * FROM idem_due('outbox', 'send', 100);
    END LOOP;
END $$;
SELECT is(count(*), 12::bigint, 'then the others') FROM rest;
SELECT bag_eq('TABLE first UNION ALL TABLE rest', 'TABLE expected',
    'each once, with its attempt, failures, payload and error; and nothing that is not due, dead or forgotten');
SELECT is_empty($$SELECT FROM idem_due('outbox')$$, 'then there are none');
SELECT results_eq($$SELECT ROW(event_id, state, attempt, failures, error)::text FROM outbox WHERE event_id LIKE '%at last'
                    ORDER BY 1$$,
    ARRAY['("moved run out at last",dead,1,10,"lease ran out")', '("run out at last",dead,1,10,"lease ran out")',
          '("sealed run out at last",dead,1,10,"lease ran out")'],
    'a lease whose run-out uses up the attempts is given up, not given out');
SELECT is(state, 'processing', 'those given out are leases')
FROM (SELECT DISTINCT state FROM outbox JOIN expected USING (event_id, first_seen_at)) s;
SELECT is_empty($$SELECT FROM outbox JOIN expected USING (event_id, first_seen_at)
                  WHERE outbox.slot <> (SELECT current_generation % slots FROM idem_control
                                        WHERE dedup = 'outbox'::regclass)$$, 'in the current generation');
SELECT is_empty($$SELECT event_id FROM outbox JOIN expected USING (event_id, first_seen_at)
                  WHERE claimable_at < claimed_at + '15 minutes'$$, 'all for the hot window at least');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', event_id, batch, attempt => attempt) FROM expected$$,
    'they are settled by their attempts');
SELECT is(ROW(count(*), count(*) FILTER (WHERE payload IS NULL))::text, '(15,15)', 'and done, without payload')
FROM outbox o WHERE state = 'done' AND (event_id, first_seen_at) IN (SELECT event_id, first_seen_at FROM expected);

-- A part of them

SELECT idem_receive('mixed', handler, format('%s %s', handler, i), payload => to_jsonb(i))
FROM generate_series(1, 50) i, unnest(ARRAY['a', 'b']) handler \g /dev/null
SELECT is(array_agg(DISTINCT handler), ARRAY['b'], 'of one handler') FROM idem_due('mixed', 'b', 10);
SELECT is(count(*), 90::bigint, 'the others wait') FROM mixed WHERE state = 'pending';
SELECT results_eq($$SELECT handler || payload FROM idem_due('mixed', 'b', 2)$$, ARRAY['b11', 'b12'],
    'so many, in the order of their coming');
SELECT is(count(*), 1::bigint, 'without a number, one') FROM idem_due('mixed');
SELECT is(count(*), 87::bigint, 'no error if there are fewer') FROM idem_due('mixed', max_events => 100);
SELECT idem_receive('mixed', 'c', i::text) FROM generate_series(1, 101) i \g /dev/null
SELECT is(count(*), 100::bigint, 'a hundred') FROM idem_due('mixed', max_events => 100);
SELECT is(count(*), 1::bigint, 'and the one that is left') FROM idem_due('mixed', max_events => 100000);

-- What dies on the way leaves room for others

SELECT idem_set_policy('mixed', 'd', max_attempts => 1) \g /dev/null
SELECT idem_acquire('outbox', 'd', 'n') \g /dev/null
SELECT is_empty($$SELECT FROM idem_due('outbox', 'd')$$, 'what this transaction works on is not due');
SELECT idem_release('outbox', 'd', 'n') \g /dev/null
SELECT is(ROW(event_id, attempt)::text, '(n,2)', 'what it has given back is') FROM idem_due('outbox', 'd');

-- Whose policy lets a lease be a claim of the transaction

SELECT idem_set_policy('mixed', 'e', mode => 'transaction') \g /dev/null
SELECT idem_receive('mixed', handler, 'x') FROM unnest(ARRAY['e', 'f']) handler \g /dev/null
SELECT set_eq($$SELECT handler FROM idem_due('mixed', max_events => 9)$$, ARRAY['e', 'f'], 'handlers of both modes in one call');
SELECT results_eq($$SELECT ROW(handler, state)::text FROM mixed WHERE event_id = 'x' ORDER BY 1$$,
    ARRAY['(e,done)', '(f,processing)'], 'each in its own mode');
SELECT throws_ok($$SELECT idem_commit('mixed', 'e', 'x', attempt => 2)$$, 'ID002', NULL, 'a wrong attempt');
SELECT lives_ok($$SELECT idem_commit('mixed', 'e', 'x', attempt => 1)$$, 'the right one');

-- The lease covers the work: the k-th of a call has k hot windows

SELECT idem_receive('mixed', 'turn', i::text) FROM generate_series(1, 3) i \g /dev/null
SELECT idem_due('mixed', 'turn', 3, '1 minute') \g /dev/null
SELECT results_eq($$SELECT round(extract(epoch FROM claimable_at - claimed_at))::int, together FROM mixed
                    WHERE handler = 'turn' ORDER BY event_id$$,
    $$VALUES (60, true), (120, true), (180, true)$$, 'as many hot windows as its place, handed out together');
SELECT throws_ok($$SELECT idem_due('mixed', 'turn', 3, '1 hour')$$, '22023', NULL, 'not longer than the policy''s')
FROM idem_receive('mixed', 'turn', '4');
SELECT results_eq($$SELECT event_id, extended, lease_until > clock_timestamp() + i * interval '119 s', error
                    FROM idem_extend_many('mixed', 'turn', '{1,2,3,none}', attempts => '{1,2,1,1}',
                                          hot_window => '2 minutes')
                         WITH ORDINALITY l (event_id, extended, lease_until, error, i)$$,
    $$VALUES ('1', true, true, NULL), ('2', false, NULL, 'ID002'), ('3', true, true, NULL), ('none', false, NULL, 'ID002')$$,
    'a heartbeat of all: those that are lost are told');

-- Poison: one event kills its worker each time, and takes nobody with it

SELECT results_eq($$SELECT event_id, failures FROM poison WHERE state = 'dead'$$, $$VALUES ('4 poison' COLLATE "C", 3)$$,
    'the poison is dead');
SELECT is(ROW(count(*), count(DISTINCT event_id))::text, '(9,9)', 'all others are sent, once each') FROM sent;
SELECT is(count(*), 9::bigint, 'and done') FROM poison WHERE state = 'done' AND failures = 0;

-- For good

SELECT idem_acquire('mixed', 'good', 'declined') \g /dev/null
SELECT is(outcome, 'dead', 'a failure without a retry is the last')
FROM idem_release('mixed', 'good', 'declined', attempt => 1, error => 'card declined', retry => false);
SELECT is(outcome, 'dead', 'said again') FROM idem_release('mixed', 'good', 'declined', attempt => 1, error => 'card declined');
SELECT is(outcome, 'dead', 'without a claim too')
FROM idem_release('mixed', 'good', 'unknown', error => 'card declined', retry => false);
SELECT idem_acquire_many('mixed', 'good', '{1,2}') \g /dev/null
SELECT is(array_agg(outcome), '{dead,dead}', 'many too')
FROM idem_release_many('mixed', 'good', '{1,2}', errors => '{no,no}', attempts => '{1,1}', retry => false);
SELECT is(count(*), 4::bigint, 'they are dead letters') FROM idem_dead_letters('mixed', 'good');

-- Later, and something else instead

SELECT is(outcome, 'acquired', 'due later')
FROM idem_receive('mixed', 'later', 'e', payload => '1', not_before => now() + interval '1 hour',
                  fingerprint => idem_fingerprint('A'::text));
SELECT is_empty($$SELECT FROM idem_due('mixed', 'later')$$, 'not now');
SELECT is(retry_after > 3540, true, 'who acquires it is told when') FROM idem_acquire('mixed', 'later', 'e');
SELECT is(ROW(acquired, outcome)::text, '(f,conflict)', 'another fingerprint is a conflict')
FROM idem_receive('mixed', 'later', 'e', payload => '2', fingerprint => idem_fingerprint('B'::text));
SELECT is(ROW(acquired, outcome)::text, '(t,acquired)', 'but may take its place')
FROM idem_receive('mixed', 'later', 'e', payload => '2', fingerprint => idem_fingerprint('B'::text), replace => true);
SELECT is(payload, '2', 'and is due at once') FROM idem_due('mixed', 'later');
SELECT is(ROW(acquired, outcome, attempt)::text, '(f,duplicate,1)', 'once claimed, it stays')
FROM idem_receive('mixed', 'later', 'e', payload => '3', replace => true);
SELECT is(payload, '2', 'as it was') FROM mixed WHERE handler = 'later';

-- Order of an ordering key

SELECT idem_receive('mixed', 'order', k || i, ordering => k) FROM generate_series(1, 3) i, unnest(ARRAY['a', 'b']) k \g /dev/null
SELECT is(relation::text, 'mixed', 'they are there') FROM (SELECT DISTINCT 'mixed'::regclass AS relation FROM mixed WHERE ordering = 'a') r;
CREATE TEMP TABLE handed AS SELECT * FROM idem_due('mixed', 'order', 10);
SELECT results_eq('SELECT event_id FROM handed ORDER BY 1', ARRAY['a1', 'b1'], 'the first of each key');
SELECT is_empty($$SELECT FROM idem_due('mixed', 'order', 10)$$, 'no further one while they are unsettled');
SELECT is(outcome, 'acquired', 'a direct claim is its caller''s word') FROM idem_acquire('mixed', 'order', 'b3');

-- What it costs depends on what is due, not on what is settled, whatever the server knows of the table

CREATE TEMP VIEW all_scans AS
    SELECT sum(seq_scan) AS tables, sum(idx_tup_fetch) AS events FROM pg_stat_xact_user_tables
    WHERE relid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'big'::regclass);
CREATE TEMP TABLE before_due AS TABLE all_scans;
CREATE TEMP VIEW scans AS
    SELECT a.tables - b.tables AS tables, a.events - b.events AS events FROM all_scans a, before_due b;
SELECT is(count(*), 4::bigint, 'a few events') FROM idem_due('big', max_events => 4);
SELECT is(tables, 0::numeric, 'no partition is read as a whole') FROM scans;
SELECT cmp_ok(events, '<', 40::numeric, 'nor many of its events, from a table that was never analyzed') FROM scans;
ANALYZE big;
SELECT is(count(*), 14::bigint, 'all others') FROM idem_due('big', 'send', 100);
SELECT is_empty($$SELECT FROM idem_due('big', 'book')$$, 'and a handler without any');
SELECT is(tables, 0::numeric, 'from one that was: neither') FROM scans;
SELECT cmp_ok(events, '<', 200::numeric, 'nor many of its events') FROM scans;

-- Refused

SELECT throws_ok('SELECT ' || call, code, message, call)
FROM (VALUES
    ($$idem_due(NULL)$$, '22004', 'dedup must not be null'),
    ($$idem_due('mixed', max_events => NULL)$$, '22004', 'max_events must not be null'),
    ($$idem_due('mixed', max_events => 0)$$, '22023', 'max_events must be 1 to 100000, not 0'),
    ($$idem_due('mixed', max_events => -1)$$, '22023', 'max_events must be 1 to 100000, not -1'),
    ($$idem_due('mixed', max_events => 100001)$$, '22023', 'max_events must be 1 to 100000, not 100001'),
    ($$idem_due('mixed', '')$$, '22023', 'handler must not be empty'),
    ($$idem_due('mixed', repeat('x', 256))$$, '22023', 'handler is too long'),
    ($$idem_due('pg_class')$$, '42809', '"pg_class" is not a dedup table'),
    ($$idem_receive('mixed', 'a', 'n', not_before => 'infinity')$$, '22023', 'not_before is not within the next 3660 days'),
    ($$idem_receive('mixed', 'a', 'n', replace => NULL)$$, '22004', 'replace must not be null'),
    ($$idem_receive('mixed', 'a', 'n', ordering => '')$$, '22023', 'ordering must not be empty'),
    ($$idem_receive('mixed', 'a', 'n', ordering => repeat('x', 256))$$, '22023', 'ordering is too long'),
    ($$idem_release('mixed', 'a', 'n', retry => false)$$, '22023', 'event "n" can''t be given up without an error'),
    ($$idem_release('mixed', 'a', 'n', error => 'no', retry_after => '1 s', retry => false)$$, '22023',
        'retry_after contradicts retry => false'),
    ($$idem_release_many('mixed', 'a', '{m,n}', errors => '{no,NULL}', retry => false)$$, '22023',
        'event "n" can''t be given up without an error'),
    ($$idem_receive('mixed', 'a', NULL)$$, '22004', 'event_id must not be null'),
    ($$idem_receive('mixed', NULL, 'a')$$, '22004', 'handler must not be null'),
    ($$idem_receive('mixed', 'a', 'a', fingerprint => 'x')$$, '22023', 'fingerprint is not one of idem''s'),
    ($$idem_receive('pg_class', 'a', 'a')$$, '42809', '"pg_class" is not a dedup table')
) r (call, code, message);
SET TRANSACTION READ ONLY;
SELECT throws_ok($$SELECT idem_due('mixed')$$, '25006', NULL, 'not in a read-only transaction');
SELECT throws_ok($$SELECT idem_receive('mixed', 'a', 'new')$$, '25006', NULL, 'neither');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA receive_and_due CASCADE;
