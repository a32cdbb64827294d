-- idem_acquire in lease mode: a claim that is committed before its work is done, and runs out.
CREATE SCHEMA acquire_lease;
SET search_path = acquire_lease, public;

-- Committed rows, as another delivery finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"to": "A"}', owner => 'token-1',
                         fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['running', 'run out', 'run out long ago', 'expired', 'done', 'forgotten', 'failed',
                          'given back', 'dead']) e;
    PERFORM idem_acquire('outbox', 'send', 'ownerless');
    PERFORM idem_commit('outbox', 'send', 'done', result => '{"message": 7}', attempt => 1);
    PERFORM idem_commit('outbox', 'send', 'forgotten', result => '{"message": 6}', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'failed', error => 'no answer', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'dead', error => 'five tries', attempt => 1);
    UPDATE outbox SET claimable_at = now() - interval '1 microsecond' WHERE event_id = 'run out';
    UPDATE outbox SET claimable_at = now() - interval '300 days' WHERE event_id = 'run out long ago';
    UPDATE outbox SET claimable_at = now() - interval '366 days', expires_at = now() - interval '1 day'
        WHERE event_id = 'expired';
    UPDATE outbox SET expires_at = now() - interval '1 second' WHERE event_id = 'forgotten';
    UPDATE outbox SET state = 'dead', claimable_at = 'infinity' WHERE event_id = 'dead';
END $$;

BEGIN;
SELECT plan(45);

-- A new event

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,1,,,)',
    'a new event is acquired')
FROM idem_acquire('outbox', 'send', 'new', 'batch 1', idem_fingerprint('B'::text), now(), '{"to": "B"}', 'token-9');
SELECT is(ROW(key = idem_key('send', 'new', 'batch 1'), state, attempt, failures, slot, handler, event_id, batch, owner,
        payload)::text,
    '(t,processing,1,0,0,send,new,"batch 1",token-9,"{""to"": ""B""}")',
    'its row says processing, and keeps the payload')
FROM outbox WHERE event_id = 'new';
SELECT is(ROW(claimable_at - first_seen_at, expires_at - claimable_at)::text, '(00:15:00,"365 days")',
    'for the hot window; it is kept for a year after that')
FROM outbox WHERE event_id = 'new';
SELECT ok(first_seen_at BETWEEN now() AND clock_timestamp(), 'from now, by clock_timestamp')
FROM outbox WHERE event_id = 'new';
SELECT is(num_nulls(claimed_at, settled_at, result, error, extra), 5, 'what says nothing is null')
FROM outbox WHERE event_id = 'new';
SELECT is(ROW(acquired, outcome, attempt, result, error)::text, '(f,busy,1,,)', 'again in its transaction: busy')
FROM idem_acquire('outbox', 'send', 'new', 'batch 1');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'unless by the owner: the same claim')
FROM idem_acquire('outbox', 'send', 'new', 'batch 1', owner => 'token-9');

SELECT is(outcome, 'acquired', 'acquired for a shorter time')
FROM idem_acquire('outbox', 'send', 'short', hot_window => '1 second');
SELECT is(claimable_at - first_seen_at, interval '1 second', 'as long as asked') FROM outbox WHERE event_id = 'short';
SELECT throws_ok($$SELECT idem_acquire('outbox', 'send', 'long', hot_window => '15 minutes 0.000001 seconds')$$,
    '22023', 'hot_window is longer than that of dedup table "outbox"', 'a longer time is refused');
SELECT is(outcome, 'acquired', 'the table''s own is allowed')
FROM idem_acquire('outbox', 'send', 'equal', hot_window => '15 minutes');
SELECT is_empty($$SELECT * FROM outbox WHERE event_id = 'long'$$, 'what was refused is not there');

-- A lease that runs, a settled event

CREATE TEMP VIEW stored AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) AS version FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;

SELECT is(ROW(acquired, outcome, attempt, retry_after > 840 AND retry_after <= 900, result,
        error)::text, '(f,busy,1,t,,)', 'a lease runs: busy, and how long')
FROM idem_acquire('outbox', 'send', 'running');
SELECT is(c.first_seen_at, o.first_seen_at, 'first seen when it was')
FROM idem_acquire('outbox', 'send', 'running') c, outbox o WHERE o.event_id = 'running';
SELECT is(outcome, 'busy', 'busy to another owner') FROM idem_acquire('outbox', 'send', 'running', owner => 'token-2');
SELECT is(outcome, 'busy', 'an owner''s name is compared as a whole')
FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1 ');
SELECT is(outcome, 'busy', 'a lease without an owner is nobody''s own')
FROM idem_acquire('outbox', 'send', 'ownerless', owner => 'token-1');
SELECT is(outcome, 'busy', 'a wait that runs out: busy')
FROM idem_acquire('outbox', 'send', 'running', wait => '1 microsecond');
SELECT is(outcome, 'busy', 'no wait: busy') FROM idem_acquire('outbox', 'send', 'running', wait => '0');
SELECT throws_ok($$SELECT FROM idem_accept('outbox', 'send', 'running')$$, 'ID004',
    'event "running" of handler "send" is not settled yet', 'to idem_accept an error');
SELECT is(ROW(acquired, outcome, attempt, retry_after)::text, '(t,acquired,1,)',
    'the owner, not knowing whether its COMMIT arrived, asks again: the same claim')
FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1');
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,duplicate,1,,"{""message"": 7}",)',
    'done: duplicate, with the result')
FROM idem_acquire('outbox', 'send', 'done');
SELECT is(outcome, 'duplicate', 'to its owner too') FROM idem_acquire('outbox', 'send', 'done', owner => 'token-1');
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,dead,1,,"five tries")', 'dead: dead, and why')
FROM idem_acquire('outbox', 'send', 'dead', owner => 'token-1');

SELECT set_eq('TABLE stored', 'TABLE stored_before',
    'none of this wrote anything: a lease is not extended by its owner''s asking');

-- A lease that ran out: whoever comes takes it over

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,2,,,)',
    'run out just now: taken over')
FROM idem_acquire('outbox', 'send', 'run out', owner => 'token-2', hot_window => '10 minutes');
SELECT is(ROW(state, attempt, failures, owner, claimed_at > first_seen_at, claimable_at - claimed_at,
        expires_at - claimable_at)::text,
    '(processing,2,1,token-2,t,00:10:00,"365 days")', 'a lease of the new owner; the silent end counts as a failure')
FROM outbox WHERE event_id = 'run out';
SELECT is(ROW(payload, fingerprint = idem_fingerprint('A'::text))::text, '("{""to"": ""A""}",t)',
    'payload and fingerprint stay where the new claim brings none')
FROM outbox WHERE event_id = 'run out';
SELECT is(outcome, 'busy', 'the new lease keeps others out')
FROM idem_acquire('outbox', 'send', 'run out', owner => 'token-1');

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)',
    'run out long ago: the owner itself makes a new claim')
FROM idem_acquire('outbox', 'send', 'run out long ago', payload => '{"to": "C"}', owner => 'token-1');
SELECT is(ROW(attempt, failures, payload)::text, '(2,1,"{""to"": ""C""}")', 'with the payload that it brings')
FROM outbox WHERE event_id = 'run out long ago';

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'failed: acquired')
FROM idem_acquire('outbox', 'send', 'failed');
SELECT is(ROW(state, failures, owner, error, payload)::text, '(processing,1,,,"{""to"": ""A""}")',
    'the error is gone, the owner too, the payload is kept')
FROM outbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'given back: acquired')
FROM idem_acquire('outbox', 'send', 'given back');
SELECT is(failures, 0, 'no failure') FROM outbox WHERE event_id = 'given back';

-- An expired event: a new one, but its attempts go on, as a zombie of the old may live

SELECT is(ROW(acquired, outcome, attempt, retry_after, result)::text, '(t,acquired,2,,)', 'done and expired: acquired')
FROM idem_acquire('outbox', 'send', 'forgotten', fingerprint => idem_fingerprint('other'::text));
SELECT is(ROW(state, failures, first_seen_at >= now(), claimed_at, settled_at, owner, result, payload)::text,
    '(processing,0,t,,,,,)', 'with nothing of the old')
FROM outbox WHERE event_id = 'forgotten';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'unsettled and expired: acquired')
FROM idem_acquire('outbox', 'send', 'expired');
SELECT is(ROW(state, failures, first_seen_at >= now(), owner, payload)::text, '(processing,0,t,,)',
    'with nothing of the old')
FROM outbox WHERE event_id = 'expired';

-- Given back and taken again in one transaction: no attempt is used twice

SELECT is(idem_acquire('outbox', 'send', 'again')::text LIKE '(t,acquired,1,%', true, 'acquired');
SELECT idem_release('outbox', 'send', 'again') \g /dev/null
SELECT is(attempt, 2, 'given back, acquired again') FROM idem_acquire('outbox', 'send', 'again');
SELECT idem_release('outbox', 'send', 'again', error => 'no') \g /dev/null
SELECT is(attempt, 3, 'failed, acquired again') FROM idem_acquire('outbox', 'send', 'again');
SELECT idem_commit('outbox', 'send', 'again', result => '1') \g /dev/null
SELECT is(ROW(outcome, attempt, result)::text, '(duplicate,3,1)', 'done') FROM idem_acquire('outbox', 'send', 'again');

SELECT is(ROW(count(*), count(*) FILTER (WHERE acquired))::text, '(2000,1000)',
    'each of a thousand events in one statement is acquired once')
FROM generate_series(0, 1999) n, idem_acquire('outbox', 'many', (n % 1000)::text);
SELECT is(count(*), 1000::bigint, 'all of them there, processing')
FROM outbox WHERE handler = 'many' AND state = 'processing';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA acquire_lease CASCADE;
