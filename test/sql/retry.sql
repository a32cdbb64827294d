-- Retries: how long an event that failed waits, when it is given up, what counts as a try, and what may be recorded of
-- work that was rolled back.
CREATE SCHEMA retry;
SET search_path = retry, public;
SET idem.backoff_jitter = 1;

-- Committed rows. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_set_policy('inbox', backoff_base => '10 s', backoff_cap => '1 min');
    PERFORM idem_set_policy('outbox', max_attempts => 3);
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"to": "A"}', owner => 'token')
        FROM unnest(ARRAY['run out', 'run out twice', 'last', 'last of another', 'accepted', 'expired']) e;
    UPDATE outbox SET claimable_at = now(),
        failures = CASE event_id WHEN 'run out' THEN 0 WHEN 'run out twice' THEN 1 ELSE 2 END;
    UPDATE outbox SET expires_at = now() WHERE event_id = 'expired';
    PERFORM idem_release('inbox', 'book', e, error => 'first')
        FROM unnest(ARRAY['due', 'due 2', 'not due', 'last']) e;
    UPDATE inbox SET claimable_at = now() WHERE event_id <> 'not due';
    UPDATE inbox SET failures = 9 WHERE event_id = 'last';
    PERFORM idem_receive('inbox', 'book', 'received', payload => '1');
    PERFORM idem_accept('inbox', 'book', 'done', result => '1');
END $$;

-- What fails again and again, and tells each time; and what never tells.
CREATE TABLE crash_loop (n int, outcome idem_outcome);
DO $$
BEGIN
    FOR n IN 1 .. 10 LOOP
        PERFORM idem_acquire('inbox', 'book', e) FROM unnest(ARRAY['crash loop', 'endless']) e;
        ROLLBACK;
        INSERT INTO crash_loop
            SELECT n, outcome FROM idem_release('inbox', 'book', 'crash loop', error => n::text, retry_after => '0');
        COMMIT;
    END LOOP;
END $$;

CREATE TABLE ledger (cents int CHECK (cents > 0));
BEGIN;
SELECT FROM idem_acquire('inbox', 'book', 'savepoint', payload => '{"cents": -5}');
SAVEPOINT work;
INSERT INTO ledger VALUES (5);
ROLLBACK TO SAVEPOINT work;
SELECT FROM idem_release('inbox', 'book', 'savepoint', error => 'not enough');
COMMIT;

BEGIN;
SELECT plan(61);
CREATE TEMP VIEW stored AS
    SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i
    UNION ALL SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax, o) FROM outbox o;

-- Backoff

-- Lets an event fail once more, though it may not be due; how long it has to wait.
CREATE FUNCTION pg_temp.pause_after_failure(handler text, retry_after interval DEFAULT NULL) RETURNS integer
    LANGUAGE plpgsql AS $$
DECLARE
    claimed boolean;
    pause integer;
BEGIN
    UPDATE inbox i SET claimable_at = now() WHERE i.handler = pause_after_failure.handler AND state = 'failed';
    SELECT acquired INTO STRICT claimed FROM idem_acquire('inbox', handler, 'pauses');
    ASSERT claimed;
    SELECT a.retry_after INTO STRICT pause
    FROM idem_release('inbox', handler, 'pauses', error => 'no', retry_after => pause_after_failure.retry_after) a;
    RETURN pause;
END $$;
SELECT results_eq($$SELECT pg_temp.pause_after_failure('full') FROM generate_series(1, 6)$$,
    ARRAY[10, 20, 40, 60, 60, 60], 'it doubles, up to the cap');
SET LOCAL idem.backoff_jitter = 0.5;
SELECT results_eq($$SELECT pg_temp.pause_after_failure('half') FROM generate_series(1, 4)$$,
    ARRAY[5, 10, 20, 30], 'or a part of that');
SET LOCAL idem.backoff_jitter = 0;
SELECT results_eq($$SELECT pg_temp.pause_after_failure('none') FROM generate_series(1, 3)$$,
    ARRAY[0, 0, 0], 'or none of it');
RESET idem.backoff_jitter;
SET LOCAL idem.backoff_jitter = -1;
SELECT idem_set_policy('inbox', 'chance', max_attempts => 1000, backoff_base => '1 hour', backoff_cap => '1 hour') \g /dev/null
CREATE TEMP TABLE pause AS SELECT pg_temp.pause_after_failure('chance') AS pause FROM generate_series(1, 100);
SELECT cmp_ok(min(pause), '>=', 0, 'by chance: not negative') FROM pause;
SELECT cmp_ok(max(pause), '<=', 3600, 'not longer') FROM pause;
SELECT cmp_ok(count(DISTINCT pause), '>', 90::bigint, 'and never the same') FROM pause;
SELECT ok(min(pause) < 1200 AND max(pause) > 2400, 'from the whole span') FROM pause;
SET LOCAL idem.backoff_jitter = 1;
SELECT is(pg_temp.pause_after_failure('asked', '3 days'), 3 * 86400, 'the caller may say how long');
SELECT is(pg_temp.pause_after_failure('asked', '0'), 0, 'or not at all');
SELECT is(pg_temp.pause_after_failure('asked'), 40, 'those failures count too');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'due', error => 'no', retry_after => '-1 s')$$, '22023',
    'retry_after must be positive', 'not a negative time');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'due', error => 'no', retry_after => '1 month')$$, '22023',
    'retry_after has no fixed length', 'nor a month');

SELECT is(ROW(outcome, attempt, error)::text, '(backoff,6,no)', 'before it is due, it is told why it failed')
FROM idem_acquire('inbox', 'full', 'pauses');
SELECT ok(a.retry_after BETWEEN ceil(extract(epoch FROM e.claimable_at - clock_timestamp()))
                           AND ceil(extract(epoch FROM e.claimable_at - e_now)),
    'and the rest of its pause in whole seconds, rounded up')
FROM clock_timestamp() e_now, inbox e, idem_acquire('inbox', 'full', 'pauses') a
WHERE e.handler = 'full';
SELECT throws_ok($$SELECT FROM idem_accept('inbox', 'full', 'pauses')$$, 'ID004',
    'event "pauses" of handler "full" is not settled yet', 'to who would accept it, an error');
UPDATE inbox SET claimable_at = clock_timestamp() + interval '2 hours' WHERE handler = 'full';
SELECT ok(retry_after BETWEEN 7140 AND 7200, 'whatever the policy says now')
FROM idem_acquire('inbox', 'full', 'pauses');
UPDATE inbox SET claimable_at = clock_timestamp() + interval '100 years' WHERE handler = 'full';
SELECT is(retry_after, 2147483647, 'however long that is') FROM idem_acquire('inbox', 'full', 'pauses');
UPDATE inbox SET claimable_at = clock_timestamp() WHERE handler = 'full';
SELECT is(ROW(acquired, attempt, error)::text, '(t,7,)', 'when it is due, it is acquired')
FROM idem_acquire('inbox', 'full', 'pauses');
SELECT idem_release('inbox', 'full', 'pauses') \g /dev/null
SELECT is(ROW(outcome, attempt)::text, '(acquired,8)', 'given back, it is due at once')
FROM idem_acquire('inbox', 'full', 'pauses');
SELECT ok(retry_after BETWEEN 3540 AND 3600, 'or when its holder says')
FROM idem_release('inbox', 'full', 'pauses', retry_after => '1 hour');

-- Given up

SELECT idem_set_policy('inbox', 'thrice', max_attempts => 3) \g /dev/null
SELECT results_eq($$SELECT pg_temp.pause_after_failure('thrice') FROM generate_series(1, 3)$$,
    ARRAY[10, 20, NULL], 'three tries, no more');
SELECT is(ROW(state, attempt, failures, error, claimable_at)::text, '(dead,3,3,no,infinity)', 'then it is dead')
FROM inbox WHERE handler = 'thrice';
SELECT ok(expires_at BETWEEN now() + interval '365 days' AND clock_timestamp() + interval '365 days', 'kept for a year')
FROM inbox WHERE handler = 'thrice';
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,dead,3,,no)', 'and nobody gets it')
FROM idem_acquire('inbox', 'thrice', 'pauses');
SELECT is(ROW(outcome, error)::text, '(dead,no)', 'whatever is asked') FROM idem_accept('inbox', 'thrice', 'pauses');
SELECT is(ROW(outcome, error)::text, '(dead,no)', 'to receive it too') FROM idem_receive('inbox', 'thrice', 'pauses');
SELECT is(ROW(outcome, error)::text, '(dead,no)', 'nor does a further failure count')
FROM idem_release('inbox', 'thrice', 'pauses', error => 'again');
SELECT is(ROW(outcome, retry_after)::text, '(dead,)', 'its holder is told so') FROM (
    SELECT idem_acquire('inbox', 'book', 'last') OFFSET 0) a,
    LATERAL idem_release('inbox', 'book', 'last', error => 'no', retry_after => '1 hour');
SELECT idem_set_policy('inbox', 'once', max_attempts => 1) \g /dev/null
SELECT is(pg_temp.pause_after_failure('once'), NULL, 'one try');
SELECT is(ROW(state, attempt, failures)::text, '(dead,1,1)', 'and it is dead') FROM inbox WHERE handler = 'once';
SELECT idem_set_policy('inbox', 'fewer', max_attempts => 5) \g /dev/null
SELECT count(pg_temp.pause_after_failure('fewer')) FROM generate_series(1, 4) \g /dev/null
SELECT idem_set_policy('inbox', 'fewer', max_attempts => 2) \g /dev/null
SELECT is(pg_temp.pause_after_failure('fewer'), NULL, 'fewer tries than there were: the next one is the last');

-- Leases that run out

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'a lease that ran out is taken over')
FROM idem_acquire('outbox', 'send', 'run out');
SELECT is(ROW(state, attempt, failures)::text, '(processing,2,1)', 'and counts as a failure')
FROM outbox WHERE event_id = 'run out';
SELECT is(ROW(acquired, attempt)::text, '(t,2)', 'so does the second') FROM idem_acquire('outbox', 'send', 'run out twice');
SELECT is(outcome, 'dead', 'if its holder fails, it was the third try')
FROM idem_release('outbox', 'send', 'run out twice', error => 'no', attempt => 2);
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,dead,1,,"lease ran out")',
    'if it was the last, nothing is given out')
FROM idem_acquire('outbox', 'send', 'last');
SELECT is(ROW(state, attempt, failures, claimable_at, error, payload, owner)::text,
    '(dead,1,3,infinity,"lease ran out","{""to"": ""A""}",token)', 'it is dead')
FROM outbox WHERE event_id = 'last';
SELECT ok(expires_at > now() + interval '364 days', 'and kept for a year') FROM outbox WHERE event_id = 'last';
SELECT is(ROW(acquired, outcome, error)::text, '(f,dead,"lease ran out")', 'once more') FROM idem_acquire('outbox', 'send', 'last');
SELECT is(ROW(acquired, outcome)::text, '(f,dead)', 'to who would accept it too')
FROM idem_accept('outbox', 'send', 'accepted');
SELECT is(ROW(acquired, outcome)::text, '(f,dead)', 'to its holder too, who names the owner')
FROM idem_acquire('outbox', 'send', 'last of another', owner => 'token');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'last', attempt => 1)$$, 'ID002',
    'no such claim on event "last" of handler "send"', 'the holder who comes late may not settle it');
SELECT is(ROW(acquired, attempt)::text, '(t,2)', 'a forgotten event begins anew')
FROM idem_acquire('outbox', 'send', 'expired');
SELECT is(failures, 0, 'with no failures') FROM outbox WHERE event_id = 'expired';

-- After a rollback

SAVEPOINT work;
SELECT idem_acquire('inbox', 'book', 'crash', payload => '{"cents": 5}') \g /dev/null
ROLLBACK TO SAVEPOINT work;
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'crash'$$, 'work that is rolled back leaves nothing, so it does not count');
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,1,10,no)',
    'unless its failure is recorded afterwards')
FROM idem_release('inbox', 'book', 'crash', error => 'no');
SELECT is(ROW(state, attempt, failures, error)::text, '(failed,1,1,no)', 'as one') FROM inbox WHERE event_id = 'crash';
SELECT is(ROW(outcome, attempt, retry_after, error)::text, '(backoff,2,20,again)', 'as a further one, where it is due')
FROM idem_release('inbox', 'book', 'due', error => 'again');
SELECT is(ROW(outcome, attempt, retry_after)::text, '(backoff,2,3600)', 'or after a time that is given')
FROM idem_release('inbox', 'book', 'due 2', error => 'again', retry_after => '1 hour');
SELECT is(ROW(outcome, attempt, retry_after, error)::text, '(backoff,1,10,no)',
    'as the first one of what was received before')
FROM idem_release('inbox', 'book', 'received', error => 'no');
SELECT is(ROW(state, failures, payload)::text, '(failed,1,1)', 'which keeps its payload')
FROM inbox WHERE event_id = 'received';
CREATE TEMP TABLE before AS TABLE stored;
SELECT is(ROW(outcome, attempt, error)::text, '(backoff,1,first)', 'where it is not due, it is told what is there')
FROM idem_release('inbox', 'book', 'not due', error => 'again');
SELECT is(ROW(outcome, result)::text, '(duplicate,)', 'where it is done too')
FROM idem_release('inbox', 'book', 'done', error => 'again');
SELECT is(ROW(outcome, error)::text, '(dead,no)', 'where it is dead too')
FROM idem_release('inbox', 'thrice', 'pauses', error => 'again');
SELECT set_eq('TABLE stored', 'TABLE before', 'and nothing is written');
SELECT results_eq('SELECT outcome FROM crash_loop ORDER BY n',
    ARRAY['backoff', 'backoff', 'backoff', 'backoff', 'backoff', 'backoff', 'backoff', 'backoff', 'backoff',
          'dead']::idem_outcome[], 'a crash loop ends if each failure is recorded');
SELECT is(ROW(attempt, failures, error)::text, '(10,10,10)', 'after ten') FROM inbox WHERE event_id = 'crash loop';
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'endless'$$, 'and would not, if none is');

-- The savepoint pattern: the work is undone, the failure stays

SELECT is_empty('TABLE ledger', 'what was done after the savepoint is undone');
SELECT is(ROW(state, attempt, failures, error, payload)::text, '(failed,1,1,"not enough","{""cents"": -5}")',
    'the failure is there')
FROM inbox WHERE event_id = 'savepoint';
SELECT is(ROW(outcome, retry_after > 0, error)::text, '(backoff,t,"not enough")', 'and told')
FROM idem_acquire('inbox', 'book', 'savepoint');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA retry CASCADE;
