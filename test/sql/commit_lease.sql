-- idem_commit in lease mode: a later transaction settles, and the fencing token decides whether it may.
CREATE SCHEMA commit_lease;
SET search_path = commit_lease, public;

-- Committed leases, as the transaction that settles finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"to": "A"}', owner => 'token-1',
                         fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['running', 'run out', 'run out long ago', 'retried', 'short', 'long', 'failed', 'given back',
                          'done', 'taken over', 'forgotten', 'unsettled']) e;
    UPDATE outbox SET claimable_at = now() - interval '1 second' WHERE event_id IN ('run out', 'taken over');
    UPDATE outbox SET claimable_at = now() - interval '400 days', expires_at = now() - interval '35 days'
        WHERE event_id = 'run out long ago';
    PERFORM idem_release('outbox', 'send', 'retried', error => 'no answer', attempt => 1);
    PERFORM idem_acquire('outbox', 'send', 'retried');
    PERFORM idem_release('outbox', 'send', 'failed', error => 'no answer', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    PERFORM idem_commit('outbox', 'send', e, result => '7', attempt => 1) FROM unnest(ARRAY['done', 'forgotten']) e;
    UPDATE outbox SET expires_at = now() WHERE event_id = 'forgotten';
END $$;
SELECT FROM idem_acquire('outbox', 'send', 'taken over');

BEGIN;
SELECT plan(33);

SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'running', result => '{"message": 1}', attempt => 1)$$,
    'a running lease');
SELECT is(ROW(state, attempt, failures, owner, result, payload, error, claimable_at,
        fingerprint = idem_fingerprint('A'::text))::text,
    '(done,1,0,token-1,"{""message"": 1}",,,,t)', 'is done; the payload is dropped')
FROM outbox WHERE event_id = 'running';
SELECT ok(settled_at BETWEEN now() AND clock_timestamp() AND expires_at - settled_at = '30 days',
    'settled now, and remembered for the cold window')
FROM outbox WHERE event_id = 'running';
SELECT is(idem_commit('outbox', 'send', 'running', result => '{"message": 1}', attempt => 1), expires_at, 'again: the same')
FROM outbox WHERE event_id = 'running';
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'running', result => '{"message": 1}')$$,
    'without attempt, as this transaction settled it');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'running', attempt => 1)$$, '22023',
    'event "running" of handler "send" was committed with another result', 'another result');
SELECT is(ROW(outcome, result)::text, '(duplicate,"{""message"": 1}")', 'to others, a duplicate')
FROM idem_acquire('outbox', 'send', 'running');

SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'run out', attempt => 1)$$,
    'a lease that ran out, but nobody took over');
SELECT is(ROW(state, attempt, failures, result)::text, '(done,1,0,)', 'is done') FROM outbox WHERE event_id = 'run out';
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'run out long ago', result => '2', attempt => 1)$$,
    'however long ago');
SELECT is(ROW(state, result, expires_at > now())::text, '(done,2,t)', 'is done')
FROM outbox WHERE event_id = 'run out long ago';
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'retried', attempt => 2)$$, 'one that failed before');
SELECT is(ROW(state, attempt, failures, error)::text, '(done,2,1,)', 'is done; how often it failed is still known')
FROM outbox WHERE event_id = 'retried';
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'short', attempt => 1, cold_window => '1 minute')$$,
    'remembered for a shorter time');
SELECT is(expires_at - settled_at, interval '1 minute', 'as long as asked') FROM outbox WHERE event_id = 'short';

-- Refused

CREATE TEMP VIEW stored AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) AS version FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;

SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'long', attempt => 1, cold_window => '31 days')$$, '22023',
    'cold_window is longer than that of dedup table "outbox"', 'remembered for a longer time');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'taken over', attempt => 1)$$, 'ID001',
    'lease lost on event "taken over" of handler "send"', 'a lease that was taken over');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'taken over')$$, '22004', 'attempt must not be null',
    'whoever does not say which attempt');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'taken over', attempt => 3)$$, 'ID002',
    'no such claim on event "taken over" of handler "send"', 'an attempt that never was');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'retried', attempt => 1)$$, 'ID001',
    'lease lost on event "retried" of handler "send"', 'the attempt that failed');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'failed', attempt => 1)$$, 'ID002',
    'no such claim on event "failed" of handler "send"', 'what was settled as failed');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'given back', attempt => 1)$$, 'ID002',
    'no such claim on event "given back" of handler "send"', 'what was given back');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'done', attempt => 1)$$, '22023',
    'event "done" of handler "send" was committed with another result', 'what was settled with another result');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'forgotten', result => '7', attempt => 1)$$, 'ID002',
    'no such claim on event "forgotten" of handler "send"', 'what is forgotten');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'forgotten')$$, 'ID002',
    'no such claim on event "forgotten" of handler "send"', 'without attempt too');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'never', attempt => 1)$$, 'ID002',
    'no such claim on event "never" of handler "send"', 'what never was');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'done', result => '7.0', attempt => 1)$$,
    'saying the same again is allowed');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- In the transaction that acquired

SELECT idem_acquire('outbox', 'send', 'new', payload => '{}') \g /dev/null
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'new', result => '3')$$, 'there the attempt may be left out');
SELECT is(ROW(state, attempt, result, payload, claimable_at)::text, '(done,1,3,,)', 'done')
FROM outbox WHERE event_id = 'new';
SELECT is(outcome, 'acquired', 'taken over in this transaction') FROM idem_acquire('outbox', 'send', 'forgotten');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'forgotten', result => '7', attempt => 1)$$, 'ID001',
    'lease lost on event "forgotten" of handler "send"', 'its earlier holder comes too late');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'forgotten')$$, 'the new one settles');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA commit_lease CASCADE;
