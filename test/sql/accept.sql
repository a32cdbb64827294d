-- idem_accept: a claim that is settled by the transaction which makes it.
CREATE SCHEMA accept;
SET search_path = accept, public;

-- Committed rows, as another delivery finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_accept('inbox', 'book', 'done', result => '{"balance": 90}');
    PERFORM idem_accept('inbox', 'book', 'expired', result => '{"balance": 80}');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{}', owner => 'token-1')
        FROM unnest(ARRAY['running', 'run out', 'failed', 'given back', 'dead']) e;
    PERFORM idem_release('outbox', 'send', 'failed', error => 'no', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
    UPDATE outbox SET state = 'dead', claimable_at = 'infinity', error = 'five tries' WHERE event_id = 'dead';
END $$;

BEGIN;
SELECT plan(27);

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,1,,,)',
    'a new event is acquired')
FROM idem_accept('inbox', 'book', 'new', 'may', idem_fingerprint('1'::text), now(), '{"balance": 70}');
SELECT is(ROW(key = idem_key('book', 'new', 'may'), state, attempt, failures, batch,
        fingerprint = idem_fingerprint('1'::text), result, expires_at - first_seen_at)::text,
    '(t,done,1,0,may,t,"{""balance"": 70}","30 days")', 'and done, with what it brings')
FROM inbox WHERE event_id = 'new';
SELECT is(num_nulls(claimed_at, claimable_at, settled_at, owner, error, payload, extra), 7, 'and nothing else')
FROM inbox WHERE event_id = 'new';
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(f,duplicate,1,"{""balance"": 70}")', 'again: duplicate')
FROM idem_accept('inbox', 'book', 'new', 'may', result => '{"balance": 60}');
SELECT is(result, '{"balance": 70}', 'whose result counts for nothing') FROM inbox WHERE event_id = 'new';
SELECT is(outcome, 'duplicate', 'to idem_acquire too') FROM idem_acquire('inbox', 'book', 'new', 'may');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'new', 'may', '{"balance": 70}')$$,
    'committing it once more says the same, and is allowed');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'new', 'may', '{"balance": 60}')$$, '22023',
    'event "new" of handler "book" was committed with another result', 'with another result it says something else');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'new', 'may', 'changed my mind', attempt => 1)$$, 'ID002',
    'no such claim on event "new" of handler "book"', 'and what is settled can''t be released');

SELECT is(ROW(acquired, outcome, attempt, result)::text, '(f,duplicate,1,"{""balance"": 90}")',
    'a committed event: duplicate')
FROM idem_accept('inbox', 'book', 'done');
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(t,acquired,2,)', 'an expired one: acquired')
FROM idem_accept('inbox', 'book', 'expired');
SELECT is(ROW(state, attempt, first_seen_at >= now(), result)::text, '(done,2,t,)', 'as a new one')
FROM inbox WHERE event_id = 'expired';

SELECT is(outcome, 'acquired', 'acquired, not settled') FROM idem_acquire('inbox', 'book', 'open');
SELECT is(ROW(acquired, outcome)::text, '(f,busy)', 'an open claim can''t be accepted on top')
FROM idem_accept('inbox', 'book', 'open');

-- In one statement with the business write

CREATE TABLE ledger (event_id text, cents int);
SELECT lives_ok($$
    INSERT INTO ledger SELECT e.id, e.cents
    FROM (VALUES ('e1', 1000), ('e2', 2000), ('e1', 1000), ('e3', 3000), ('e1', 1000)) e (id, cents),
         idem_accept('inbox', 'ledger', e.id)
    WHERE acquired$$, 'deliveries of three events, with duplicates among them');
SELECT bag_eq('TABLE ledger', $$VALUES ('e1', 1000), ('e2', 2000), ('e3', 3000)$$, 'each is booked once');

-- In lease mode it settles all the same

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'a new event in lease mode')
FROM idem_accept('outbox', 'send', 'new', result => '[]');
SELECT is(ROW(state, claimable_at, result, expires_at - first_seen_at)::text, '(done,,[],"30 days")', 'is done')
FROM outbox WHERE event_id = 'new';
SELECT is(ROW(acquired, outcome, attempt)::text, '(f,busy,1)', 'a lease runs: busy')
FROM idem_accept('outbox', 'send', 'running');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'a lease ran out: taken over')
FROM idem_accept('outbox', 'send', 'run out');
SELECT is(ROW(state, attempt, failures, owner, payload, claimable_at)::text, '(done,2,1,,,)',
    'and done; the payload is dropped')
FROM outbox WHERE event_id = 'run out';
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'run out', attempt => 1)$$, 'ID001',
    'lease lost on event "run out" of handler "send"', 'its old holder comes too late');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'failed: acquired')
FROM idem_accept('outbox', 'send', 'failed');
SELECT is(ROW(state, failures, error, payload)::text, '(done,1,,)', 'and done') FROM outbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'given back: acquired')
FROM idem_accept('outbox', 'send', 'given back');
SELECT is(ROW(acquired, outcome, attempt, error)::text, '(f,dead,1,"five tries")', 'dead: dead')
FROM idem_accept('outbox', 'send', 'dead');
SELECT is(state, 'dead', 'and stays so') FROM outbox WHERE event_id = 'dead';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA accept CASCADE;
