-- idem_release in transaction mode: a claim that ends as failed or given back, and a failure recorded after a rollback.
CREATE SCHEMA release;
SET search_path = release, public;

-- Committed rows. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_accept('inbox', 'book', e, result => '1', fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['done', 'expired']) e;
    PERFORM idem_release('inbox', 'book', e, error => 'first')
        FROM unnest(ARRAY['failed', 'failed too', 'failed, not due', 'dead']) e;
    PERFORM idem_acquire('inbox', 'book', 'given back');
    PERFORM idem_release('inbox', 'book', 'given back');
    PERFORM idem_acquire('inbox', 'book', 'failed, expired', payload => '{"cents": 6}');
    PERFORM idem_release('inbox', 'book', 'failed, expired', error => 'first');
    UPDATE inbox SET expires_at = now() WHERE event_id IN ('expired', 'failed, expired');
    UPDATE inbox SET claimable_at = now() + interval '1 hour' WHERE event_id = 'failed, not due';
    UPDATE inbox SET state = 'dead', claimable_at = 'infinity' WHERE event_id = 'dead';
END $$;

BEGIN;
SELECT plan(61);
CREATE TEMP VIEW stored AS SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i;

-- Failed

SELECT idem_acquire('inbox', 'book', 'fails', 'may', idem_fingerprint('A'::text), payload => '{"cents": 5}',
    owner => 'token-1') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,"no such wallet")',
    'due again at once')
FROM idem_release('inbox', 'book', 'fails', 'may', 'no such wallet');
SELECT is(ROW(state, attempt, failures, batch, fingerprint = idem_fingerprint('A'::text), owner, result, error, payload,
        settled_at)::text,
    '(failed,1,1,may,t,token-1,,"no such wallet","{""cents"": 5}",)',
    'failed, and why; the payload is there to try again')
FROM inbox WHERE event_id = 'fails';
SELECT ok(claimable_at BETWEEN first_seen_at AND clock_timestamp() AND expires_at - claimable_at = '365 days',
    'it is kept for a year')
FROM inbox WHERE event_id = 'fails';
CREATE TEMP TABLE failed AS TABLE stored;
SELECT is(ROW(acquired, outcome, attempt, retry_after)::text, '(f,backoff,1,0)', 'again by attempt: the same')
FROM idem_release('inbox', 'book', 'fails', 'may', 'no such wallet', 1);
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,1,0,"no such wallet")',
    'without: the same, and why')
FROM idem_release('inbox', 'book', 'fails', 'may', 'no such wallet');
SELECT set_eq('TABLE stored', 'TABLE failed', 'and nothing is written');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'fails', 'may', attempt => 1)$$, 'ID002',
    'no such claim on event "fails" of handler "book"', 'what failed can''t be given back');
SELECT is(attempt, 2, 'what failed is acquired') FROM idem_acquire('inbox', 'book', 'fails', 'may');
SELECT is(ROW(attempt, outcome)::text, '(2,backoff)', 'and may fail again')
FROM idem_release('inbox', 'book', 'fails', 'may', 'again', 2);
SELECT is(ROW(attempt, failures, error, payload)::text, '(2,2,again,"{""cents"": 5}")',
    'which counts; the payload that the first brought stays')
FROM inbox WHERE event_id = 'fails';

-- Given back

SELECT idem_acquire('inbox', 'book', 'gives', payload => '{"cents": 5}') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,)',
    'due again at once')
FROM idem_release('inbox', 'book', 'gives');
SELECT is(ROW(state, attempt, failures, error, payload)::text, '(pending,1,0,,"{""cents"": 5}")', 'pending, no failure')
FROM inbox WHERE event_id = 'gives';
SELECT ok(claimable_at BETWEEN first_seen_at AND clock_timestamp() AND expires_at - claimable_at = '365 days',
    'it is kept for a year')
FROM inbox WHERE event_id = 'gives';
CREATE TEMP TABLE given AS TABLE stored;
SELECT is(ROW(acquired, outcome, attempt, retry_after)::text, '(f,backoff,1,0)', 'again: the same')
FROM idem_release('inbox', 'book', 'gives', attempt => 1);
SELECT set_eq('TABLE stored', 'TABLE given', 'and nothing is written');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'gives', error => 'no', attempt => 1)$$, 'ID002',
    'no such claim on event "gives" of handler "book"', 'what was given back can''t fail');

SELECT idem_acquire('inbox', 'book', 'after a retry') \g /dev/null
SELECT idem_release('inbox', 'book', 'after a retry', error => 'no') \g /dev/null
SELECT idem_acquire('inbox', 'book', 'after a retry') \g /dev/null
SELECT idem_release('inbox', 'book', 'after a retry') \g /dev/null
SELECT is(ROW(state, attempt, failures)::text, '(pending,2,1)', 'giving back does not count, and takes no failure back')
FROM inbox WHERE event_id = 'after a retry';

-- Its error

SELECT is(outcome, 'backoff', 'an empty error is an error')
FROM idem_release('inbox', 'book', 'empty error', error => '');
SELECT is(ROW(state, failures, error)::text, '(failed,1,"")', 'and makes a failure')
FROM inbox WHERE event_id = 'empty error';
SELECT is(outcome, 'backoff', 'the longest error')
FROM idem_release('inbox', 'book', 'long error', error => repeat('é', 32 * 1024));
SELECT is(octet_length(error), 65536, 'is kept whole') FROM inbox WHERE event_id = 'long error';
SELECT is(error, repeat('é', 32 * 1024), 'and told')
FROM idem_release('inbox', 'book', 'long error', error => 'again');
SELECT is(ROW(outcome, error)::text, format('(backoff,x%s)', repeat('é', 32767)), 'a longer one is cut at a character''s end')
FROM idem_release('inbox', 'book', 'too long error', error => 'x' || repeat('é', 32 * 1024));
SELECT is(ROW(failures, octet_length(error))::text, '(1,65535)', 'and the failure counts')
FROM inbox WHERE event_id = 'too long error';

-- Not due for a while

SELECT idem_acquire('inbox', 'book', 'later') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,1,7200,no)',
    'failed, to be retried later')
FROM idem_release('inbox', 'book', 'later', error => 'no', retry_after => '2 hours');
SELECT ok(claimable_at BETWEEN now() + interval '2 hours' AND clock_timestamp() + interval '2 hours'
          AND expires_at - claimable_at = '365 days', 'due then, and kept for a year after that')
FROM inbox WHERE event_id = 'later';
SELECT is(ROW(acquired, outcome, retry_after > 7140 AND retry_after <= 7200, error)::text,
    '(f,backoff,t,no)', 'until then nobody acquires it')
FROM idem_acquire('inbox', 'book', 'later');
SELECT idem_acquire('inbox', 'book', 'given, later') \g /dev/null
SELECT is(ROW(outcome, retry_after)::text, '(backoff,7200)', 'given back for later')
FROM idem_release('inbox', 'book', 'given, later', retry_after => '2 hours');
SELECT is(outcome, 'backoff', 'until then nobody acquires it') FROM idem_acquire('inbox', 'book', 'given, later');
SELECT is(ROW(outcome, retry_after)::text, '(backoff,7200)',
    'a failure recorded without a claim, to be retried later')
FROM idem_release('inbox', 'book', 'recorded, later', error => 'no', retry_after => '2 hours');
SELECT is(outcome, 'backoff', 'until then nobody acquires it') FROM idem_acquire('inbox', 'book', 'recorded, later');
SELECT is(ROW(outcome, retry_after)::text, '(backoff,0)', 'zero is at once')
FROM idem_release('inbox', 'book', 'at once', error => 'no', retry_after => '0');
SELECT is(attempt, 2, 'so it is acquired') FROM idem_acquire('inbox', 'book', 'at once');

-- After a rollback the claim is gone; a failure is recorded where nothing else happened meanwhile

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,deadlock)',
    'no row: recorded')
FROM idem_release('inbox', 'book', 'rolled back', 'may', 'deadlock');
SELECT is(ROW(state, attempt, failures, batch, owner, result, error, payload, claimed_at,
        key = idem_key('book', 'rolled back', 'may'))::text,
    '(failed,1,1,may,,,deadlock,,,t)', 'as a first try that failed')
FROM inbox WHERE event_id = 'rolled back';
SELECT is(attempt, 2, 'the next delivery is its second') FROM idem_acquire('inbox', 'book', 'rolled back', 'may');
SELECT idem_commit('inbox', 'book', 'rolled back', 'may') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,2,0,second)',
    'failed and due: recorded')
FROM idem_release('inbox', 'book', 'failed', error => 'second');
SELECT is(ROW(state, attempt, failures, error)::text, '(failed,2,2,second)', 'as one more try that failed')
FROM inbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,2,0,deadlock)',
    'pending and due: recorded')
FROM idem_release('inbox', 'book', 'given back', error => 'deadlock');
SELECT is(ROW(state, attempt, failures, error)::text, '(failed,2,1,deadlock)', 'as one more try that failed')
FROM inbox WHERE event_id = 'given back';
SELECT is(ROW(acquired, outcome, attempt, error)::text, '(f,backoff,2,deadlock)', 'expired: recorded')
FROM idem_release('inbox', 'book', 'expired', error => 'deadlock');
SELECT is(ROW(state, attempt, failures, first_seen_at >= now(), result, fingerprint)::text, '(failed,2,1,t,,)',
    'as a new event''s first try')
FROM inbox WHERE event_id = 'expired';

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)',
    'a failed event that expired is acquired as a new one')
FROM idem_acquire('inbox', 'book', 'failed, expired');
SELECT is(outcome, 'backoff', 'and fails') FROM idem_release('inbox', 'book', 'failed, expired', error => 'second');
SELECT is(ROW(state, attempt, failures, first_seen_at >= now(), payload)::text, '(failed,2,1,t,)',
    'with nothing of the old, its payload neither')
FROM inbox WHERE event_id = 'failed, expired';

CREATE TEMP TABLE stored_before AS TABLE stored;
SELECT is(ROW(acquired, outcome, attempt, retry_after, result)::text, '(f,duplicate,1,,)', 'done: it only tells so')
FROM idem_release('inbox', 'book', 'done', error => 'deadlock');
SELECT is(ROW(acquired, outcome, attempt, retry_after > 3540, error)::text, '(f,backoff,1,t,first)',
    'failed and not due: it only tells so')
FROM idem_release('inbox', 'book', 'failed, not due', error => 'deadlock');
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,dead,1,,first)', 'dead: it only tells so')
FROM idem_release('inbox', 'book', 'dead', error => 'deadlock');
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,backoff,,0,)',
    'no row, nothing failed: nothing to record')
FROM idem_release('inbox', 'book', 'unknown');
SELECT is(ROW(acquired, outcome)::text, '(f,duplicate)', 'done, nothing failed: it only tells so')
FROM idem_release('inbox', 'book', 'done');
SELECT is(ROW(acquired, outcome, error)::text, '(f,backoff,first)', 'failed, nothing failed: it only tells so')
FROM idem_release('inbox', 'book', 'failed too');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- Refused

SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'done', error => 'no', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "book"', 'what is done can''t fail');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'done', attempt => 1)$$, 'ID002',
    'no such claim on event "done" of handler "book"', 'nor be given back');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'unknown', error => 'no', attempt => 1)$$, 'ID002',
    'no such claim on event "unknown" of handler "book"', 'an attempt on an unknown event');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'dead', attempt => 2)$$, 'ID002',
    'no such claim on event "dead" of handler "book"', 'an attempt that never was');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'failed', error => 'no', attempt => 1)$$, 'ID001',
    'lease lost on event "failed" of handler "book"', 'an attempt that was followed by another');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- What was committed in this transaction

SELECT idem_acquire('inbox', 'book', 'committed') \g /dev/null
SELECT idem_commit('inbox', 'book', 'committed', result => '9') \g /dev/null
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'committed', error => 'no')$$, 'ID002',
    'no such claim on event "committed" of handler "book"', 'can''t be released in it');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'committed', error => 'no', attempt => 1)$$, 'ID002',
    'no such claim on event "committed" of handler "book"', 'by attempt neither');
SELECT is(ROW(state, result)::text, '(done,9)', 'it stays committed') FROM inbox WHERE event_id = 'committed';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA release CASCADE;
