-- What was given up: idem_dead_letters lists it, idem_requeue lets it be tried again, idem_resolve settles it by hand.
-- Neither touches what somebody works on, and who worked on it before can settle it no more.
CREATE SCHEMA dead_letters;
SET search_path = dead_letters, public;

-- Committed rows. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_create_table('inbox');
    PERFORM idem_set_policy('outbox', max_attempts => 1);
    PERFORM idem_set_policy('outbox', 'kept', max_attempts => 5);
    PERFORM idem_acquire('outbox', h, e, batch => 'may', payload => '{"to": "A"}', owner => 'token',
                         fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['send', 'call']) h, unnest(ARRAY['dead', 'dead 2', 'dead 3', 'dead, forgotten', 'run out']) e;
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
    PERFORM idem_release('outbox', h, e, 'may', 'no answer', 1)
        FROM unnest(ARRAY['send', 'call']) h, unnest(ARRAY['dead', 'dead 2', 'dead 3', 'dead, forgotten']) e;
    PERFORM idem_acquire('outbox', 'kept', e, payload => '{"to": "A"}')
        FROM unnest(ARRAY['running', 'run out', 'run out 2', 'failed', 'failed, not due', 'done', 'given back',
                          'expired']) e;
    PERFORM idem_release('outbox', 'kept', e, error => 'no answer', attempt => 1)
        FROM unnest(ARRAY['failed', 'failed, not due', 'expired']) e;
    PERFORM idem_release('outbox', 'kept', 'given back', attempt => 1);
    PERFORM idem_commit('outbox', 'kept', 'done', attempt => 1, result => '1');
    PERFORM idem_receive('outbox', 'kept', e, payload => '{"to": "A"}') FROM unnest(ARRAY['received', 'received 2']) e;
    UPDATE outbox SET claimable_at = now() WHERE event_id IN ('run out', 'run out 2') AND handler = 'kept';
    UPDATE outbox SET claimable_at = now() + interval '1 hour' WHERE event_id = 'failed, not due';
    UPDATE outbox SET expires_at = now() WHERE event_id IN ('dead, forgotten', 'expired');
    UPDATE outbox SET first_seen_at = now() - interval '1 day' WHERE event_id = 'dead 3';
END $$;
SELECT FROM unnest(ARRAY['send', 'call']) h, idem_acquire('outbox', h, 'run out', 'may');
CALL idem_rotate('outbox');

BEGIN;
SELECT plan(75);
CREATE TEMP VIEW stored AS SELECT handler, event_id, concat_ws(' ', tableoid, ctid, xmin, xmax) AS version FROM outbox;

-- Listed

SELECT results_eq($$SELECT event_id::text COLLATE "default" FROM idem_dead_letters('outbox', 'send')$$,
    ARRAY['dead 3', 'dead', 'dead 2', 'run out'], 'of a handler, what came first is first; none that is forgotten');
SELECT is(count(*), 8::bigint, 'of all handlers') FROM idem_dead_letters('outbox');
SELECT is_empty($$SELECT FROM idem_dead_letters('outbox', 'kept')$$, 'of one that has none');
SELECT is_empty($$SELECT FROM idem_dead_letters('inbox')$$, 'of a table that has none');
SELECT results_eq($$SELECT * FROM idem_dead_letters('outbox', 'call') ORDER BY key$$,
    $$SELECT key, state, attempt, first_seen_at, claimed_at, claimable_at, settled_at, expires_at, failures, slot, together,
             handler, event_id, batch, fingerprint, owner, ordering, result, error, payload, extra
      FROM outbox WHERE handler = 'call' AND state = 'dead' AND expires_at > now() ORDER BY key$$, 'the whole row');
SELECT is(ROW(attempt, failures, error, payload, owner)::text, '(1,1,"lease ran out","{""to"": ""A""}",token)',
    'a lease that ran out too') FROM idem_dead_letters('outbox', 'send') WHERE event_id = 'run out';
SELECT throws_ok('SELECT ' || call, code, message, call)
FROM (VALUES
    ($$idem_dead_letters(NULL)$$, '22004', 'dedup must not be null'),
    ($$idem_dead_letters('outbox', '')$$, '22023', 'handler must not be empty'),
    ($$idem_dead_letters('pg_class')$$, '42809', '"pg_class" is not a dedup table')
) r (call, code, message);

-- Tried again

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,backoff,1,0,,)',
    'requeued: due at once')
FROM idem_requeue('outbox', 'send', 'dead', 'may');
SELECT is(ROW(state, attempt, failures, payload, error, owner, fingerprint IS NOT NULL)::text,
    '(pending,1,0,"{""to"": ""A""}","no answer",token,t)',
    'its failures are forgotten; its attempt, payload and last error are not')
FROM outbox WHERE handler = 'send' AND event_id = 'dead';
SELECT ok(claimable_at BETWEEN now() AND clock_timestamp() AND expires_at - claimable_at = '365 days',
    'it is kept for another year')
FROM outbox WHERE handler = 'send' AND event_id = 'dead';
SELECT is(count(*), 3::bigint, 'it is no dead letter') FROM idem_dead_letters('outbox', 'send');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'dead', 'may', attempt => 1)$$, 'ID002',
    'no such claim on event "dead" of handler "send"', 'who held it may not settle it, though nobody has it yet');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'dead', 'may', 'no', 1)$$, 'ID002', NULL, 'nor as failed');
SELECT throws_ok($$SELECT idem_extend('outbox', 'send', 'dead', 'may', 1)$$, 'ID002', NULL, 'nor go on');
SELECT is(ROW(event_id, attempt, failures, payload, error)::text, '(dead,2,0,"{""to"": ""A""}","no answer")',
    'idem_due gives it out as a new attempt')
FROM idem_due('outbox', 'send');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'dead', 'may', attempt => 1)$$, 'ID001',
    'lease lost on event "dead" of handler "send"', 'who held it before has lost it');
SELECT is(outcome, 'dead', 'it may be given up again') FROM idem_release('outbox', 'send', 'dead', 'may', 'still none', 2);
SELECT is(ROW(outcome, retry_after)::text, '(backoff,0)', 'and requeued')
FROM idem_requeue('outbox', 'send', 'dead', 'may');
SELECT is(ROW(acquired, attempt)::text, '(t,3)', 'and acquired')
FROM idem_acquire('outbox', 'send', 'dead', 'may', fingerprint => idem_fingerprint('A'::text));
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'dead', 'may', attempt => 3)$$, 'and done');
SELECT is(ROW(outcome, error)::text, '(backoff,"no answer")', 'who asks before it is due is told why it failed')
FROM idem_acquire('outbox', 'kept', 'failed, not due');
SELECT is(ROW(outcome, retry_after)::text, '(backoff,0)', 'what has failed but is not due')
FROM idem_requeue('outbox', 'kept', 'failed, not due');
SELECT is(ROW(state, attempt, failures)::text, '(pending,1,0)', 'is due then')
FROM outbox WHERE event_id = 'failed, not due';
SELECT is(outcome, 'backoff', 'what is due already') FROM idem_requeue('outbox', 'kept', 'failed');
SELECT is(ROW(state, failures)::text, '(pending,0)', 'has its failures forgotten') FROM outbox WHERE event_id = 'failed';
SELECT is(outcome, 'backoff', 'a lease that ran out') FROM idem_requeue('outbox', 'kept', 'run out');
SELECT is(ROW(state, attempt, failures)::text, '(pending,1,0)', 'is due without being counted as a failure')
FROM outbox WHERE handler = 'kept' AND event_id = 'run out';
SELECT throws_ok($$SELECT idem_commit('outbox', 'kept', 'run out', attempt => 1)$$, 'ID002', NULL,
    'its holder comes too late');

-- What is not requeued

CREATE TEMP TABLE before AS TABLE stored;
SELECT is(ROW(r.acquired, r.outcome, r.retry_after > 0)::text, expected, event || ': only told')
FROM (VALUES ('running', '(f,busy,t)'), ('done', '(f,duplicate,)'), ('received', '(f,backoff,f)'),
             ('given back', '(f,backoff,f)'), ('run out', '(f,backoff,f)'),
             ('failed', '(f,backoff,f)')) v (event, expected),
     LATERAL idem_requeue('outbox', 'kept', event) r;
SELECT throws_ok($$SELECT idem_requeue('outbox', 'kept', 'expired')$$, 'ID002',
    'no event "expired" of handler "kept" is remembered', 'what is forgotten');
SELECT throws_ok($$SELECT idem_requeue('outbox', 'kept', 'new')$$, 'ID002',
    'no event "new" of handler "kept" is remembered', 'what never was');
SELECT throws_ok($$SELECT idem_requeue('outbox', 'send', 'dead 2')$$, 'ID002', NULL, 'without its batch');
SELECT throws_ok($$SELECT idem_requeue('outbox', 'send', NULL)$$, '22004', 'event_id must not be null', 'null');
SELECT throws_ok($$SELECT idem_requeue('pg_class', 'send', 'e')$$, '42809', '"pg_class" is not a dedup table', 'a table');
SELECT set_eq('TABLE stored', 'TABLE before', 'nothing of it is written');

-- Settled by hand

SELECT is(ROW(acquired, outcome, retry_after)::text, '(f,duplicate,)', 'resolved: done')
FROM idem_resolve('outbox', 'send', 'dead 2', 'may', 'called the customer', '{"by": "phone"}');
SELECT is(ROW(state, attempt, failures, result, payload, error, claimable_at, extra->>'note',
        extra->>'resolved_by' = current_user)::text,
    '(done,2,1,"{""by"": ""phone""}",,"no answer",,"called the customer",t)',
    'with its result and the note, and who did it; why it failed is not forgotten')
FROM outbox WHERE handler = 'send' AND event_id = 'dead 2';
SELECT ok(settled_at BETWEEN now() AND clock_timestamp() AND expires_at - settled_at = '30 days',
    'remembered for the cold window')
FROM outbox WHERE handler = 'send' AND event_id = 'dead 2';
SELECT is(ROW(acquired, outcome, result)::text, '(f,duplicate,"{""by"": ""phone""}")', 'others are told the result')
FROM idem_acquire('outbox', 'send', 'dead 2', 'may', idem_fingerprint('A'::text));
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'dead 2', 'may', attempt => 1, result => '{"by": "phone"}')$$,
    'ID001', 'lease lost on event "dead 2" of handler "send"', 'who held it has lost it, even with the same result');
SELECT throws_ok($$SELECT idem_release('outbox', 'send', 'dead 2', 'may', 'no', 1)$$, 'ID001', NULL, 'nor may fail');
SELECT is(ROW(state, attempt, extra->>'note')::text, '(done,2,"called the customer")', 'it stays as it was resolved')
FROM outbox WHERE handler = 'send' AND event_id = 'dead 2';
SELECT is(outcome, 'duplicate', 'what has failed') FROM idem_resolve('outbox', 'kept', 'failed', note => 'n');
SELECT is(outcome, 'duplicate', 'what was given back') FROM idem_resolve('outbox', 'kept', 'given back', note => 'n');
SELECT is(outcome, 'duplicate', 'what was received') FROM idem_resolve('outbox', 'kept', 'received 2', note => 'n');
SELECT is(outcome, 'duplicate', 'a lease that ran out') FROM idem_resolve('outbox', 'kept', 'run out 2', note => 'n');
SELECT results_eq($$SELECT ROW(event_id, state, attempt, payload, result, extra->>'note')::text FROM outbox
                    WHERE handler = 'kept' AND extra IS NOT NULL ORDER BY event_id$$,
    ARRAY['(failed,done,2,,,n)', '("given back",done,2,,,n)', '("received 2",done,1,,,n)', '("run out 2",done,2,,,n)'],
    'are done, by an attempt that nobody else has');
SELECT throws_ok($$SELECT idem_commit('outbox', 'kept', 'run out 2', attempt => 1)$$, 'ID001', NULL,
    'the lease''s holder comes too late');
SELECT idem_resolve('outbox', 'call', 'dead', 'may', E'"quoted" \\ \x07 €') \g /dev/null
SELECT is(extra->>'note', E'"quoted" \\ \x07 €', 'a note may be any text') FROM idem_lookup('outbox', 'call', 'dead', 'may');

-- What is not resolved

DROP TABLE before;
CREATE TEMP TABLE before AS TABLE stored;
SELECT is(ROW(r.acquired, r.outcome, r.retry_after > 0)::text, expected, event || ': only told')
FROM (VALUES ('running', '(f,busy,t)'), ('done', '(f,duplicate,)'), ('run out 2', '(f,duplicate,)')) v (event, expected),
     LATERAL idem_resolve('outbox', 'kept', event, note => 'again', result => '3') r;
SELECT throws_ok('SELECT ' || call, code, message, call)
FROM (VALUES
    ($$idem_resolve('outbox', 'kept', 'expired', note => 'n')$$, 'ID002',
     'no event "expired" of handler "kept" is remembered'),
    ($$idem_resolve('outbox', 'kept', 'new', note => 'n')$$, 'ID002', 'no event "new" of handler "kept" is remembered'),
    ($$idem_resolve('outbox', 'call', 'dead 2', 'may')$$, '22004', 'note must not be null'),
    ($$idem_resolve('outbox', 'call', 'dead 2', 'may', '')$$, '22023', 'note must not be empty'),
    ($$idem_resolve('outbox', 'call', 'dead 2', 'may', repeat('x', 65537))$$, '22023', 'note is too long'),
    ($$idem_resolve('outbox', 'call', 'dead 2', 'may', 'n', to_jsonb(repeat('x', 1048576)))$$, '22023',
     'result is too large'),
    ($$idem_resolve('pg_class', 'call', 'e', note => 'n')$$, '42809', '"pg_class" is not a dedup table')
) r (call, code, message);
SELECT set_eq('TABLE stored', 'TABLE before', 'nothing of it is written');

-- In transaction mode, within one transaction

SELECT idem_acquire('inbox', 'book', 'open') \g /dev/null
SELECT is(outcome, 'busy', 'a claim of the transaction is not requeued') FROM idem_requeue('inbox', 'book', 'open');
SELECT is(outcome, 'busy', 'nor resolved') FROM idem_resolve('inbox', 'book', 'open', note => 'n');
SELECT is(outcome, 'backoff', 'but settled by who holds it') FROM idem_release('inbox', 'book', 'open', error => 'no');
SELECT is(outcome, 'duplicate', 'then it is resolved') FROM idem_resolve('inbox', 'book', 'open', note => 'n', result => '4');
SELECT is(ROW(outcome, result)::text, '(duplicate,4)', 'and done') FROM idem_accept('inbox', 'book', 'open');

-- Read-only

SET TRANSACTION READ ONLY;
SELECT is(count(*), 5::bigint, 'a read-only transaction may list them') FROM idem_dead_letters('outbox');
SELECT throws_ok($$SELECT idem_requeue('outbox', 'call', 'dead 2', 'may')$$, '25006',
    'cannot execute idem_requeue() in a read-only transaction', 'not requeue');
SELECT throws_ok($$SELECT idem_resolve('outbox', 'call', 'dead 2', 'may', 'n')$$, '25006',
    'cannot execute idem_resolve() in a read-only transaction', 'not resolve');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA dead_letters CASCADE;
