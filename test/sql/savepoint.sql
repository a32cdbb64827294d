-- Savepoints: what is rolled back is forgotten or open again, and nothing else is.
BEGIN;
SELECT plan(64);

SELECT idem_create_table('inbox') \g /dev/null
SELECT idem_create_table('outbox', mode => 'lease') \g /dev/null

-- "state" of an event to its own transaction: acquired = unknown, busy = open, duplicate = settled.
-- Asking must not change it, so an answer "acquired" is rolled back.
CREATE FUNCTION pg_temp.asked(event text, dedup regclass DEFAULT 'inbox') RETURNS idem_outcome LANGUAGE plpgsql AS $$
DECLARE
    answer idem_outcome;
BEGIN
    SELECT outcome INTO answer FROM idem_acquire(dedup, 'book', event);
    IF answer = 'acquired' THEN RAISE EXCEPTION USING errcode = 'XX999'; END IF;
    RETURN answer;
EXCEPTION WHEN SQLSTATE 'XX999' THEN
    RETURN 'acquired';
END $$;

-- A claim made in a savepoint

SAVEPOINT a;
SELECT idem_acquire('inbox', 'book', 'claimed in a') \g /dev/null
SELECT is(pg_temp.asked('claimed in a'), 'busy', 'claimed in a savepoint: open');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('claimed in a'), 'acquired', 'rolled back: forgotten');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'claimed in a')$$, 'ID002',
    'no such claim on event "claimed in a" of handler "book"', 'it can''t be settled');
SELECT is(attempt, 1, 'claimed again, it is the first attempt') FROM idem_acquire('inbox', 'book', 'claimed in a');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'claimed in a', attempt => 1)$$, 'which is settled');
RELEASE SAVEPOINT a;
SELECT is(pg_temp.asked('claimed in a'), 'duplicate', 'the savepoint ends well: settled');

SAVEPOINT a;
SELECT idem_acquire('inbox', 'book', 'released in a') \g /dev/null
RELEASE SAVEPOINT a;
SELECT is(pg_temp.asked('released in a'), 'busy', 'a claim outlives its savepoint''s good end');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'released in a')$$, 'and is settled outside');
SELECT is(pg_temp.asked('released in a'), 'duplicate', 'settled');

SAVEPOINT a;
SAVEPOINT b;
SELECT idem_acquire('inbox', 'book', 'released in b') \g /dev/null
RELEASE SAVEPOINT b;
SELECT is(pg_temp.asked('released in b'), 'busy', 'claimed in an inner savepoint that ended well: open');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('released in b'), 'acquired', 'the outer one is rolled back: forgotten');
RELEASE SAVEPOINT a;

-- A claim settled in a savepoint

SELECT idem_acquire('inbox', 'book', 'settled in a') \g /dev/null
SAVEPOINT a;
SELECT idem_commit('inbox', 'book', 'settled in a') \g /dev/null
SELECT is(pg_temp.asked('settled in a'), 'duplicate', 'settled in a savepoint, without a write');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('settled in a'), 'busy', 'rolled back: open again');
SELECT idem_commit('inbox', 'book', 'settled in a', result => '1') \g /dev/null
SELECT is(pg_temp.asked('settled in a'), 'duplicate', 'settled again, with a result');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('settled in a'), 'busy', 'rolled back: open again');
SELECT is(result, NULL, 'without the result') FROM inbox WHERE event_id = 'settled in a';
RELEASE SAVEPOINT a;
SELECT is(pg_temp.asked('settled in a'), 'busy', 'open still after the savepoint');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'settled in a', result => '2')$$, 'and settled outside');
SELECT is(ROW(state, result)::text, '(done,2)', 'with its result') FROM inbox WHERE event_id = 'settled in a';

SELECT idem_acquire('inbox', 'book', 'settled in b') \g /dev/null
SAVEPOINT a;
SAVEPOINT b;
SELECT idem_commit('inbox', 'book', 'settled in b') \g /dev/null
RELEASE SAVEPOINT b;
SELECT is(pg_temp.asked('settled in b'), 'duplicate', 'settled in an inner savepoint that ended well');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('settled in b'), 'busy', 'the outer one is rolled back: open again');
SAVEPOINT b;
SELECT idem_commit('inbox', 'book', 'settled in b') \g /dev/null
RELEASE SAVEPOINT b;
RELEASE SAVEPOINT a;
SELECT is(pg_temp.asked('settled in b'), 'duplicate', 'both end well: settled');

-- Claimed in one savepoint, settled in another

SAVEPOINT a;
SELECT idem_acquire('inbox', 'book', 'here and there') \g /dev/null
RELEASE SAVEPOINT a;
SAVEPOINT b;
SELECT idem_commit('inbox', 'book', 'here and there') \g /dev/null
ROLLBACK TO SAVEPOINT b;
SELECT is(pg_temp.asked('here and there'), 'busy', 'the settling is rolled back, the claim stays');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'here and there')$$, 'it is settled anew');
RELEASE SAVEPOINT b;
SELECT is(pg_temp.asked('here and there'), 'duplicate', 'settled');

SAVEPOINT a;
SELECT idem_acquire('inbox', 'book', 'all in a') \g /dev/null
SAVEPOINT b;
SELECT idem_commit('inbox', 'book', 'all in a') \g /dev/null
ROLLBACK TO SAVEPOINT b;
SELECT is(pg_temp.asked('all in a'), 'busy',
    'claimed in the outer, settled in the inner, which is rolled back: open again');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('all in a'), 'acquired', 'the outer one too: forgotten');
RELEASE SAVEPOINT a;

-- Released in a savepoint

SELECT idem_acquire('inbox', 'book', 'failed in a', payload => '{"cents": 1}') \g /dev/null
SAVEPOINT a;
SELECT idem_release('inbox', 'book', 'failed in a', error => 'no') \g /dev/null
SELECT is(ROW(state, payload)::text, '(failed,"{""cents"": 1}")', 'failed in a savepoint')
FROM inbox WHERE event_id = 'failed in a';
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('failed in a'), 'busy', 'rolled back: open again');
SELECT idem_release('inbox', 'book', 'failed in a', error => 'no') \g /dev/null
SELECT is(attempt, 2, 'failed, and claimed again in the savepoint') FROM idem_acquire('inbox', 'book', 'failed in a');
SELECT idem_commit('inbox', 'book', 'failed in a', attempt => 2) \g /dev/null
SELECT is(pg_temp.asked('failed in a'), 'duplicate', 'and settled');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('failed in a'), 'busy', 'rolled back: the first claim is open again');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'failed in a', attempt => 2)$$, 'ID002',
    'no such claim on event "failed in a" of handler "book"', 'the second never was');
SELECT lives_ok($$SELECT idem_release('inbox', 'book', 'failed in a', error => 'no', attempt => 1)$$,
    'the first may fail');
RELEASE SAVEPOINT a;
SELECT is(ROW(state, attempt, failures, payload)::text, '(failed,1,1,"{""cents"": 1}")', 'once, with its payload')
FROM inbox WHERE event_id = 'failed in a';

-- A second claim on an event whose first one a rollback may bring back

SELECT idem_acquire('inbox', 'book', 'reclaimed') \g /dev/null
SAVEPOINT a;
SELECT idem_release('inbox', 'book', 'reclaimed') \g /dev/null
SAVEPOINT b;
SELECT is(attempt, 2, 'given back in the outer savepoint, claimed in the inner')
FROM idem_acquire('inbox', 'book', 'reclaimed');
ROLLBACK TO SAVEPOINT b;
SELECT is(state, 'pending', 'the inner is rolled back: given back') FROM inbox WHERE event_id = 'reclaimed';
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'reclaimed')$$, 'ID002',
    'no such claim on event "reclaimed" of handler "book"', 'no claim is open');
SELECT is(attempt, 2, 'claimed again') FROM idem_acquire('inbox', 'book', 'reclaimed');
RELEASE SAVEPOINT b;
SELECT is(pg_temp.asked('reclaimed'), 'busy', 'open');
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('reclaimed'), 'busy', 'the outer is rolled back: the first claim is open');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'reclaimed', attempt => 2)$$, 'ID002',
    'no such claim on event "reclaimed" of handler "book"', 'and not the second');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'reclaimed', attempt => 1)$$, 'it is settled');
RELEASE SAVEPOINT a;

-- Blocks of PL/pgSQL with EXCEPTION are savepoints

CREATE FUNCTION pg_temp.work(event text, fails bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM idem_acquire('inbox', 'book', event);
    PERFORM 1 / CASE WHEN fails THEN 0 ELSE 1 END;
    PERFORM idem_commit('inbox', 'book', event);
    RETURN 'worked';
EXCEPTION WHEN division_by_zero THEN
    RETURN 'failed';
END $$;
SELECT is(pg_temp.work('block', true), 'failed', 'the work fails');
SELECT is(pg_temp.asked('block'), 'acquired', 'its claim is forgotten');
SELECT is(pg_temp.work('block', false), 'worked', 'the work succeeds');
SELECT is(pg_temp.asked('block'), 'duplicate', 'its claim is settled');
SELECT is(count(*) FILTER (WHERE pg_temp.work(n::text, n % 3 = 0) = 'worked'), 666::bigint,
    'a thousand of them, every third fails')
FROM generate_series(1, 999) n;
SELECT is(count(*) FILTER (WHERE outcome = 'duplicate') || ' ' || count(*) FILTER (WHERE outcome = 'acquired'),
    '666 333', 'are kept apart')
FROM generate_series(1, 999) n, idem_acquire('inbox', 'book', n::text);

-- An error in a call leaves an open claim as it is

SELECT idem_acquire('inbox', 'book', 'after an error') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'after an error', attempt => 7)$$, 'ID002', NULL,
    'a wrong attempt');
SELECT is(pg_temp.asked('after an error'), 'busy', 'settles nothing');
SELECT idem_commit('inbox', 'book', 'after an error') \g /dev/null

-- The savepoint of a claim is rolled back: its failure counts, whatever this transaction did to the event before

SELECT is(outcome, 'acquired', 'an event that is received here') FROM idem_receive('inbox', 'book', 'received');
SAVEPOINT a;
SELECT is(attempt, 1, 'and claimed in a savepoint') FROM idem_acquire('inbox', 'book', 'received');
ROLLBACK TO SAVEPOINT a;
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'received')$$, 'ID002', NULL, 'is not settled as done');
SELECT is(outcome, 'backoff', 'but as failed') FROM idem_release('inbox', 'book', 'received', error => 'no');
SELECT is(ROW(state, attempt, failures, error)::text, '(failed,1,1,no)', 'which is kept')
FROM inbox WHERE event_id = 'received';
SELECT is(outcome, 'backoff', 'requeued') FROM idem_requeue('inbox', 'book', 'received');
SAVEPOINT a;
SELECT is(attempt, 2, 'and claimed again') FROM idem_acquire('inbox', 'book', 'received');
ROLLBACK TO SAVEPOINT a;
SELECT is(outcome, 'backoff', 'it fails') FROM idem_release('inbox', 'book', 'received', error => 'still no');
SELECT is(ROW(state, attempt, failures, error)::text, '(failed,2,1,"still no")', 'as one that never had')
FROM inbox WHERE event_id = 'received';

-- Lease mode: the rows alone tell

SAVEPOINT a;
SELECT idem_acquire('outbox', 'book', 'lease') \g /dev/null
ROLLBACK TO SAVEPOINT a;
SELECT is(pg_temp.asked('lease', 'outbox'), 'acquired', 'a lease that is rolled back is forgotten');
SELECT idem_acquire('outbox', 'book', 'lease') \g /dev/null
SAVEPOINT b;
SELECT idem_commit('outbox', 'book', 'lease', result => '1') \g /dev/null
ROLLBACK TO SAVEPOINT b;
SELECT is(pg_temp.asked('lease', 'outbox'), 'busy', 'a settling that is rolled back leaves the lease');
SELECT lives_ok($$SELECT idem_commit('outbox', 'book', 'lease', result => '2', attempt => 1)$$, 'which is settled');
SELECT is(result, '2', 'once') FROM outbox WHERE event_id = 'lease';

SELECT * FROM finish();
ROLLBACK;
