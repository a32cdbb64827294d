-- idem_release in lease mode: a later transaction releases, and the fencing token decides whether it may.
CREATE SCHEMA release_lease;
SET search_path = release_lease, public;

-- Committed leases, as the transaction that releases finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"to": "A"}', owner => 'token-1',
                         fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['fails', 'gives', 'run out', 'run out, given', 'taken over', 'running', 'left alone',
                          'done']) e;
    PERFORM idem_commit('outbox', 'send', 'done', result => '7', attempt => 1);
    UPDATE outbox SET claimable_at = now() - interval '1 second'
        WHERE event_id IN ('run out', 'run out, given', 'taken over', 'left alone');
END $$;
SELECT FROM idem_acquire('outbox', 'send', 'taken over');

BEGIN;
SELECT plan(27);

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,"no answer")',
    'a running lease fails')
FROM idem_release('outbox', 'send', 'fails', error => 'no answer', attempt => 1);
SELECT is(ROW(state, attempt, failures, owner, error, payload, fingerprint = idem_fingerprint('A'::text),
        settled_at)::text,
    '(failed,1,1,token-1,"no answer","{""to"": ""A""}",t,)', 'failed, and why; the payload is kept')
FROM outbox WHERE event_id = 'fails';
SELECT ok(claimable_at BETWEEN now() AND clock_timestamp() AND expires_at - claimable_at = '365 days',
    'due at once, kept for a year')
FROM outbox WHERE event_id = 'fails';
SELECT is(ROW(outcome, error)::text, '(backoff,"no answer")', 'again: the same')
FROM idem_release('outbox', 'send', 'fails', error => 'no answer', attempt => 1);
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'fails', attempt => 1)$$, 'ID002',
    'no such claim on event "fails" of handler "send"', 'it can''t be committed any more');
SELECT is(ROW(acquired, attempt)::text, '(t,2)', 'the next one acquires') FROM idem_acquire('outbox', 'send', 'fails');

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,)',
    'a running lease is given back')
FROM idem_release('outbox', 'send', 'gives', attempt => 1);
SELECT is(ROW(state, attempt, failures, owner, error, payload)::text, '(pending,1,0,token-1,,"{""to"": ""A""}")',
    'pending; the payload is kept')
FROM outbox WHERE event_id = 'gives';
SELECT ok(claimable_at BETWEEN now() AND clock_timestamp() AND expires_at - claimable_at = '365 days',
    'due at once, kept for a year')
FROM outbox WHERE event_id = 'gives';
SELECT is(ROW(acquired, attempt)::text, '(t,2)', 'the next one acquires') FROM idem_acquire('outbox', 'send', 'gives');

SELECT is(outcome, 'backoff', 'a lease that ran out, but nobody took over, fails')
FROM idem_release('outbox', 'send', 'run out', error => 'too slow', attempt => 1);
SELECT is(ROW(state, failures, error)::text, '(failed,1,"too slow")', 'once') FROM outbox WHERE event_id = 'run out';
SELECT is(outcome, 'backoff', 'or is given back') FROM idem_release('outbox', 'send', 'run out, given', attempt => 1);
SELECT is(ROW(state, failures)::text, '(pending,0)', 'as if it had not run out')
FROM outbox WHERE event_id = 'run out, given';

-- Refused

CREATE TEMP VIEW stored AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) AS version FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;

SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'taken over', error => 'no', attempt => 1)$$, 'ID001',
    'lease lost on event "taken over" of handler "send"', 'a lease that was taken over can''t fail');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'taken over', attempt => 1)$$, 'ID001',
    'lease lost on event "taken over" of handler "send"', 'nor be given back: that would take it from its new holder');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'taken over', attempt => 3)$$, 'ID002',
    'no such claim on event "taken over" of handler "send"', 'an attempt that never was');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'done', error => 'no', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "send"', 'what is done can''t fail');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'done', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "send"', 'nor be given back');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'never', attempt => 1)$$, 'ID002',
    'no such claim on event "never" of handler "send"', 'what never was');

-- Without attempt it changes nothing that lives

SELECT is(ROW(acquired, outcome, attempt, retry_after > 840)::text, '(f,busy,1,t)',
    'a lease runs: it only tells so')
FROM idem_release('outbox', 'send', 'running', error => 'not mine');
SELECT is(ROW(acquired, outcome, attempt)::text, '(f,busy,1)', 'giving back neither')
FROM idem_release('outbox', 'send', 'running');
SELECT is(ROW(acquired, outcome, attempt, retry_after)::text, '(f,backoff,1,0)',
    'a lease ran out: it only tells that it is due')
FROM idem_release('outbox', 'send', 'left alone', error => 'not mine');
SELECT is(ROW(acquired, outcome, attempt)::text, '(f,duplicate,1)', 'done: it only tells so')
FROM idem_release('outbox', 'send', 'done', error => 'not mine');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- In the transaction that acquired

SELECT idem_acquire('outbox', 'send', 'new', payload => '{"to": "B"}') \g /dev/null
SELECT is(ROW(outcome, attempt)::text, '(backoff,1)', 'there the attempt may be left out')
FROM idem_release('outbox', 'send', 'new', error => 'no');
SELECT is(ROW(state, failures, error, payload)::text, '(failed,1,no,"{""to"": ""B""}")', 'failed')
FROM outbox WHERE event_id = 'new';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA release_lease CASCADE;
