-- idem_extend: the heartbeat of a lease.
CREATE SCHEMA extend;
SET search_path = extend, public;

-- Committed leases, as a later transaction finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_create_table('inbox');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"to": "A"}', owner => 'token-1')
        FROM unnest(ARRAY['running', 'nearly out', 'run out', 'taken over', 'failed', 'given back', 'done']) e;
    PERFORM idem_release('outbox', 'send', 'failed', error => 'no', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    PERFORM idem_commit('outbox', 'send', 'done', attempt => 1);
    PERFORM idem_accept('inbox', 'book', 'done');
    UPDATE outbox SET claimable_at = now() + interval '1 minute' WHERE event_id = 'nearly out';
    UPDATE outbox SET claimable_at = now() - interval '1 day' WHERE event_id IN ('run out', 'taken over');
END $$;
SELECT FROM idem_acquire('outbox', 'send', 'taken over');

BEGIN;
SELECT plan(33);

CREATE TEMP TABLE at_start AS SELECT * FROM outbox;

SELECT idem_extend('outbox', 'send', 'nearly out', attempt => 1) AS ends \gset
SELECT ok(:'ends' BETWEEN now() + interval '15 minutes' AND clock_timestamp() + interval '15 minutes',
    'for another hot window from now');
SELECT is(claimable_at, :'ends', 'which the row says') FROM outbox WHERE event_id = 'nearly out';
SELECT is(expires_at - claimable_at, interval '365 days', 'it is kept for a year after that')
FROM outbox WHERE event_id = 'nearly out';
SELECT is(
    (SELECT to_jsonb(o) - '{claimable_at,expires_at}'::text[] FROM outbox o WHERE event_id = 'nearly out'),
    (SELECT to_jsonb(a) - '{claimable_at,expires_at}'::text[] FROM at_start a WHERE event_id = 'nearly out'),
    'nothing else changes, the attempt neither');

SELECT ctid AS place FROM outbox WHERE event_id = 'running' \gset
SELECT is(ends, (SELECT claimable_at FROM at_start WHERE event_id = 'running'), 'a shorter window does not shorten it')
FROM idem_extend('outbox', 'send', 'running', attempt => 1, hot_window => '1 second') ends;
SELECT is(ROW(claimable_at, expires_at),
    (SELECT ROW(claimable_at, expires_at) FROM at_start WHERE event_id = 'running'), 'in the row neither')
FROM outbox WHERE event_id = 'running';
SELECT is(ctid, :'place', 'which is not written again') FROM outbox WHERE event_id = 'running';
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'running', attempt => 1, hot_window => '16 minutes')$$, '22023',
    'hot_window is longer than that of dedup table "outbox"', 'a longer window is refused');
SELECT ok(ends BETWEEN now() + interval '15 minutes' AND clock_timestamp() + interval '15 minutes',
    'the table''s own is allowed')
FROM idem_extend('outbox', 'send', 'running', attempt => 1, hot_window => '15 minutes') ends;

SELECT ok(ends > now() + interval '14 minutes', 'a lease that ran out, but nobody took over, runs again')
FROM idem_extend('outbox', 'send', 'run out', attempt => 1) ends;
SELECT is(ROW(outcome, attempt)::text, '(busy,1)', 'and keeps others out')
FROM idem_acquire('outbox', 'send', 'run out');
SELECT is(failures, 0, 'no failure') FROM outbox WHERE event_id = 'run out';

-- Refused

CREATE TEMP VIEW stored AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) AS version FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;

SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'taken over', attempt => 1)$$, 'ID001',
    'lease lost on event "taken over" of handler "send"', 'a lease that was taken over');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'taken over', attempt => 3)$$, 'ID002',
    'no such claim on event "taken over" of handler "send"', 'an attempt that never was');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'taken over')$$, '22004', 'attempt must not be null',
    'whoever does not say which attempt');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'failed', attempt => 1)$$, 'ID002',
    'no such claim on event "failed" of handler "send"', 'what failed');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'given back', attempt => 1)$$, 'ID002',
    'no such claim on event "given back" of handler "send"', 'what was given back');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'done', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "send"', 'what is done');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'never', attempt => 1)$$, 'ID002',
    'no such claim on event "never" of handler "send"', 'what never was');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'never')$$, 'ID002',
    'no such claim on event "never" of handler "send"', 'without attempt too');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- In the transaction that acquired

SELECT idem_acquire('outbox', 'send', 'new', hot_window => '1 second') \g /dev/null
SELECT ok(idem_extend('outbox', 'send',
        'new') BETWEEN now() + interval '15 minutes' AND clock_timestamp() + interval '15 minutes',
    'there the attempt may be left out');
SELECT is(outcome, 'busy', 'it is open still') FROM idem_acquire('outbox', 'send', 'new');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'new')$$, 'until it is settled');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'new')$$, 'ID002',
    'no such claim on event "new" of handler "send"', 'then it is no lease');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'run out')$$, 'whoever has just extended a lease holds it');

-- In transaction mode nothing runs out

SELECT idem_acquire('inbox', 'book', 'new') \g /dev/null
CREATE TEMP TABLE claimed AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i;
SELECT is(idem_extend('inbox', 'book', 'new'), NULL, 'an open claim has no end');
SELECT is(idem_extend('inbox', 'book', 'new', attempt => 1, hot_window => '1 second'), NULL, 'by attempt neither');
SELECT set_eq($$SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, i) FROM inbox i$$, 'TABLE claimed',
    'nothing is written');
SELECT is(outcome, 'busy', 'it is open still') FROM idem_acquire('inbox', 'book', 'new');
SELECT idem_commit('inbox', 'book', 'new') \g /dev/null
SELECT throws_ok($$SELECT idem_extend('inbox', 'book', 'new')$$, 'ID002',
    'no such claim on event "new" of handler "book"', 'settled');
SELECT throws_ok($$SELECT idem_extend('inbox', 'book', 'done', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "book"', 'long settled');
SELECT throws_ok($$SELECT idem_extend('inbox', 'book', 'never')$$, 'ID002',
    'no such claim on event "never" of handler "book"', 'never acquired');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA extend CASCADE;
