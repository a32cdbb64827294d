-- idem_commit in transaction mode.
CREATE SCHEMA commit;
SET search_path = commit, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('brief', '1 microsecond', '50 microseconds');
    PERFORM idem_accept('inbox', 'book', 'done', result => '{"a": 1.0}');
    PERFORM idem_accept('inbox', 'book', 'done without result');
    PERFORM idem_accept('inbox', 'book', 'expired');
    PERFORM idem_accept('inbox', 'book', 'retaken');
    PERFORM idem_release('inbox', 'book', 'failed', error => 'no');
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE inbox SET attempt = 3 WHERE event_id = 'retaken';
END $$;

BEGIN;
SELECT plan(46);
CREATE TEMP VIEW stored AS SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i;

-- Without a result nothing needs writing: the row says done since its claim

SELECT idem_acquire('inbox', 'book', 'plain') \g /dev/null
CREATE TEMP TABLE claimed AS TABLE stored;
SELECT is(idem_commit('inbox', 'book', 'plain'), (SELECT expires_at FROM inbox WHERE event_id = 'plain'),
    'it answers until when the event is remembered');
SELECT set_eq('TABLE stored', 'TABLE claimed', 'it wrote nothing');
SELECT is(outcome, 'duplicate', 'the claim is settled') FROM idem_acquire('inbox', 'book', 'plain');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'plain')$$, 'settling twice is allowed');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'plain', attempt => 1)$$, 'by attempt too');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'plain', result => 'null')$$, '22023',
    'event "plain" of handler "book" was committed with another result',
    'a result afterwards is another result, a JSON null too');

-- With a result

SELECT idem_acquire('inbox', 'book', 'result', batch => 'may', payload => '{}', owner => 'token-1') \g /dev/null
SELECT is(idem_commit('inbox', 'book', 'result', 'may', '{"a": [1, {"b": null}], "ü": "支付"}', 1) - clock_timestamp()
    BETWEEN '29 days 23 hours' AND '30 days', true, 'settled with a result, and told until when it is remembered');
SELECT is(ROW(state, attempt, failures, batch, owner, result, payload, error, claimable_at)::text,
    ROW('done', 1, 0, 'may', 'token-1', '{"a": [1, {"b": null}], "ü": "支付"}'::jsonb, NULL, NULL, NULL)::text,
    'which is stored')
FROM inbox WHERE event_id = 'result';
SELECT ok(settled_at > first_seen_at AND expires_at - settled_at = '30 days', 'the cold window counts from settling')
FROM inbox WHERE event_id = 'result';
SELECT is(result, '{"a": [1, {"b": null}], "ü": "支付"}', 'and returned to duplicates')
FROM idem_acquire('inbox', 'book', 'result', 'may');
CREATE TEMP TABLE settled AS TABLE stored;
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'result', 'may', '{"ü":"支付",  "a":[1.0,{"b":null}]}')$$,
    'the same result in other words');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'result', 'may', '{"a": [1, {"b": null}], "ü": "支付"}', 1)$$,
    'by attempt too');
SELECT set_eq('TABLE stored', 'TABLE settled', 'wrote nothing');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'result', 'may', '{"a": 2}')$$, '22023',
    'event "result" of handler "book" was committed with another result', 'another result');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'result', 'may')$$, '22023',
    'event "result" of handler "book" was committed with another result', 'none, where there is one, is another too');
SELECT set_eq('TABLE stored', 'TABLE settled', 'neither overwrote it');

SELECT idem_acquire('inbox', 'book', 'null result') \g /dev/null
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'null result', result => 'null')$$, 'a JSON null is a result');
SELECT is(result, 'null', 'and stored') FROM inbox WHERE event_id = 'null result';

-- How long it is remembered

SELECT idem_acquire('inbox', 'book', 'shorter') \g /dev/null
SELECT ok(idem_commit('inbox', 'book', 'shorter', cold_window => '1 hour') BETWEEN clock_timestamp() + interval '1 minute'
    AND clock_timestamp() + interval '1 hour', 'for a shorter time');
SELECT is(expires_at - settled_at, interval '1 hour', 'from settling') FROM inbox WHERE event_id = 'shorter';
SELECT idem_acquire('inbox', 'book', 'longer') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'longer', cold_window => '30 days 0.000001 seconds')$$, '22023',
    'cold_window is longer than that of dedup table "inbox"', 'a longer time is refused');
SELECT is(outcome, 'busy', 'which settles nothing') FROM idem_acquire('inbox', 'book', 'longer');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'longer', cold_window => '30 days')$$,
    'the table''s own is allowed');
SELECT is(outcome, 'duplicate', 'and settles') FROM idem_acquire('inbox', 'book', 'longer');

SELECT idem_acquire('brief', 'book', 'slow work') \g /dev/null
SELECT idem_commit('brief', 'book', 'slow work') \g /dev/null
SELECT ok(settled_at > first_seen_at AND expires_at - settled_at = '50 microseconds',
    'where the work took more than a hundredth of the cold window, it counts from settling all the same')
FROM brief WHERE event_id = 'slow work';

-- What this transaction has not acquired

CREATE TEMP TABLE before_refusals AS TABLE stored;

SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'never')$$, 'ID002',
    'no such claim on event "never" of handler "book"', 'never acquired');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'never', attempt => 1)$$, 'ID002',
    'no such claim on event "never" of handler "book"', 'by attempt neither');
SELECT throws_ok($$SELECT idem_commit('inbox', 'mail', 'plain')$$, 'ID002',
    'no such claim on event "plain" of handler "mail"', 'another handler''s event is another');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'result', 'june')$$, 'ID002',
    'no such claim on event "result" of handler "book"', 'another batch''s too');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'result', attempt => 1)$$, 'ID002',
    'no such claim on event "result" of handler "book"', 'and none');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'done', result => '{"a": 1}')$$, '22004',
    'attempt must not be null', 'of an event which another transaction acquired, one has to say which attempt');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'done', result => '{"a": 1}', attempt => 1)$$,
    'then saying the same again is allowed');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'done without result', attempt => 1)$$, 'without a result too');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'done', result => '{"a": 2}', attempt => 1)$$, '22023',
    'event "done" of handler "book" was committed with another result', 'and something else is not');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'done', result => '{"a": 1}', attempt => 2)$$, 'ID002',
    'no such claim on event "done" of handler "book"', 'an attempt that never was');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'retaken', attempt => 2)$$, 'ID001',
    'lease lost on event "retaken" of handler "book"', 'an attempt that was taken over');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'expired', attempt => 1)$$, 'ID002',
    'no such claim on event "expired" of handler "book"', 'a forgotten event');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'failed', attempt => 1)$$, 'ID002',
    'no such claim on event "failed" of handler "book"', 'a failed one');

SELECT set_eq('TABLE stored', 'TABLE before_refusals', 'none of this wrote anything');

-- What this transaction has released

SELECT idem_acquire('inbox', 'book', 'released') \g /dev/null
SELECT idem_release('inbox', 'book', 'released', error => 'no') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'released')$$, 'ID002',
    'no such claim on event "released" of handler "book"', 'failed');
SELECT idem_acquire('inbox', 'book', 'given') \g /dev/null
SELECT idem_release('inbox', 'book', 'given') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'given')$$, 'ID002',
    'no such claim on event "given" of handler "book"', 'given back');

-- Fencing within the transaction

SELECT idem_acquire('inbox', 'book', 'fenced') \g /dev/null
SELECT idem_release('inbox', 'book', 'fenced') \g /dev/null
SELECT idem_acquire('inbox', 'book', 'fenced') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'fenced', attempt => 1)$$, 'ID001',
    'lease lost on event "fenced" of handler "book"', 'the attempt that was given back');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'fenced', attempt => 3)$$, 'ID002',
    'no such claim on event "fenced" of handler "book"', 'one to come');
SELECT is(outcome, 'busy', 'settle nothing') FROM idem_acquire('inbox', 'book', 'fenced');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'fenced', attempt => 2)$$, 'the one that is held');
SELECT is(outcome, 'duplicate', 'settles') FROM idem_acquire('inbox', 'book', 'fenced');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA commit CASCADE;
