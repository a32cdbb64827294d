-- idem_acquire in transaction mode: what is acquired, and what finds a duplicate or its own open claim.
CREATE SCHEMA acquire;
SET search_path = acquire, public;

-- Committed rows, as another delivery finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_accept('inbox', 'book', 'done', result => '{"balance": 90}');
    PERFORM idem_accept('inbox', 'book', 'done without result');
    PERFORM idem_accept('inbox', 'book', 'batched', batch => 'may');
    PERFORM idem_accept('inbox', 'book', 'expired', result => '"old"', fingerprint => idem_fingerprint('old'::text));
    PERFORM idem_release('inbox', 'book', 'failed', error => 'no such wallet');
    PERFORM idem_release('inbox', 'book', 'failed, not due', error => 'ledger closed');
    PERFORM idem_release('inbox', 'book', 'dead', error => 'five tries');
    PERFORM idem_acquire('inbox', 'book', 'given back');
    PERFORM idem_release('inbox', 'book', 'given back');
    UPDATE inbox SET expires_at = now() - interval '1 second' WHERE event_id = 'expired';
    UPDATE inbox SET claimable_at = now() + interval '1 hour' WHERE event_id = 'failed, not due';
    UPDATE inbox SET state = 'dead', claimable_at = 'infinity' WHERE event_id = 'dead';
END $$;

-- pgTAP writes itself, so this can't be asked between its tests.
BEGIN;
SELECT FROM idem_acquire('inbox', 'book', 'done');
SELECT FROM idem_acquire('inbox', 'book', 'failed, not due');
SELECT FROM idem_accept('inbox', 'book', 'done');
SELECT pg_current_xact_id_if_assigned() IS NULL AS without_xid \gset
COMMIT;

BEGIN;
SELECT plan(54);

-- A new event

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,1,,,)',
    'a new event is acquired')
FROM idem_acquire('inbox', 'book', 'new');
SELECT ok(first_seen_at BETWEEN now() AND clock_timestamp(), 'first seen now, by clock_timestamp')
FROM idem_lookup('inbox', 'book', 'new');
SELECT is(ROW(key = idem_key('book', 'new'), state, attempt, failures, slot, handler, event_id,
        expires_at - first_seen_at)::text,
    '(t,done,1,0,0,book,new,"30 days")', 'its row says done already, until the cold window ends')
FROM inbox WHERE event_id = 'new';
SELECT is(num_nulls(claimed_at, claimable_at, settled_at, batch, fingerprint, owner, result, error, payload, extra), 10,
    'what says nothing is null')
FROM inbox WHERE event_id = 'new';
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,busy,1,1,,)',
    'again in its transaction, still open: busy')
FROM idem_acquire('inbox', 'book', 'new');
SELECT throws_ok($$SELECT FROM idem_accept('inbox', 'book', 'new')$$, 'ID004',
    'event "new" of handler "book" is not settled yet', 'to idem_accept an error');
SELECT is(outcome, 'busy', 'who waits for one''s own claim is told so at once')
FROM idem_acquire('inbox', 'book', 'new', wait => '1000 days');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'new', result => '[1]')$$, 'settled');
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,duplicate,1,,[1],)',
    'again in its transaction, settled: duplicate, with the result')
FROM idem_acquire('inbox', 'book', 'new');
SELECT is(c.first_seen_at, i.first_seen_at, 'and the time of the first delivery')
FROM idem_acquire('inbox', 'book', 'new') c, inbox i WHERE i.event_id = 'new';

-- What a claim brings

SELECT is(outcome, 'acquired', 'acquired with all there is')
FROM idem_acquire('inbox', 'book', 'full', 'batch 1', idem_fingerprint('1000'::text), now(), '{"cents": 1000}',
    'token-1');
SELECT is(ROW(batch, fingerprint = idem_fingerprint('1000'::text), owner, payload, result)::text,
    '("batch 1",t,token-1,,)',
    'batch, fingerprint and owner are kept; the payload is not, as the event is done with this transaction')
FROM idem_lookup('inbox', 'book', 'full', 'batch 1');
SELECT idem_commit('inbox', 'book', 'full', 'batch 1') \g /dev/null
SELECT is(outcome, 'acquired', 'a hot window is allowed, though it says nothing here')
FROM idem_acquire('inbox', 'book', 'hot', hot_window => '1 minute');
SELECT is(claimable_at, NULL, 'nothing runs out') FROM idem_lookup('inbox', 'book', 'hot');

-- Identity: handler, event_id, batch, byte by byte

SELECT is(outcome, 'acquired', 'another handler''s event is another event') FROM idem_acquire('inbox', 'mail', 'done');
SELECT is(outcome, 'acquired', 'another batch''s too') FROM idem_acquire('inbox', 'book', 'done', 'resend');
SELECT is(outcome, 'acquired', 'and another one''s') FROM idem_acquire('inbox', 'book', 'batched', 'june');
SELECT is(outcome, 'acquired', 'and none') FROM idem_acquire('inbox', 'book', 'batched');
SELECT is(outcome, 'duplicate', 'the same batch''s is the same event')
FROM idem_acquire('inbox', 'book', 'batched', 'may');
SELECT is(outcome, 'acquired', 'capitals count') FROM idem_acquire('inbox', 'book', 'Done');
SELECT is(outcome, 'acquired', 'blanks count') FROM idem_acquire('inbox', 'book', 'done ');
SELECT is(outcome, 'acquired', 'where a part ends counts') FROM idem_acquire('inbox', 'bookd', 'one');

-- The owner asks again

SELECT is(outcome, 'acquired', 'acquired with an owner')
FROM idem_acquire('inbox', 'book', 'owned', owner => 'token-2');
SELECT is(ROW(acquired, outcome, attempt, retry_after)::text, '(t,acquired,1,)', 'the owner again: the same claim')
FROM idem_acquire('inbox', 'book', 'owned', owner => 'token-2');
SELECT is(outcome, 'busy', 'another owner: busy') FROM idem_acquire('inbox', 'book', 'owned', owner => 'token-20');
SELECT is(outcome, 'busy', 'no owner: busy') FROM idem_acquire('inbox', 'book', 'owned');
SELECT is(outcome, 'busy', 'a claim without an owner is nobody''s own')
FROM idem_acquire('inbox', 'book', 'hot', owner => 'token-2');
SELECT is(count(*), 1::bigint, 'it needs settling once') FROM idem_commit('inbox', 'book', 'owned');
SELECT is(outcome, 'duplicate', 'to the owner too, it is settled then')
FROM idem_acquire('inbox', 'book', 'owned', owner => 'token-2');

-- A committed event that lives

CREATE TEMP VIEW stored AS SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i;
CREATE TEMP TABLE stored_before AS TABLE stored;

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,duplicate,1,,"{""balance"": 90}",)',
    'done: duplicate, with the stored result')
FROM idem_acquire('inbox', 'book', 'done');
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,duplicate,1,,,)',
    'done without a result: duplicate, without one')
FROM idem_acquire('inbox', 'book', 'done without result');
SELECT is(c.first_seen_at, i.first_seen_at, 'first seen when it was')
FROM idem_acquire('inbox', 'book', 'done') c, inbox i WHERE i.key = idem_key('book', 'done');
SELECT is(outcome, 'duplicate', 'whatever is brought, a duplicate stays one')
FROM idem_acquire('inbox', 'book', 'done', NULL, idem_fingerprint('x'::text), now(), '{}', 'token-3', '0', '1 second');
SELECT is(outcome, 'duplicate', 'to who would wait, too')
FROM idem_acquire('inbox', 'book', 'done', wait => '1000 days');
SELECT is(ROW(acquired, outcome, attempt, retry_after > 3540 AND retry_after <= 3600, error)::text,
    '(f,backoff,1,t,"ledger closed")', 'failed and not due: backoff, how long, and why it failed')
FROM idem_acquire('inbox', 'book', 'failed, not due');
SELECT is(ROW(acquired, outcome, attempt, retry_after, error)::text, '(f,dead,1,,"five tries")',
    'dead: dead, and why it failed')
FROM idem_acquire('inbox', 'book', 'dead');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything, nor locked a row');
SELECT ok(:'without_xid', 'nor needs it a transaction id');

-- A committed event that may be claimed again

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,2,,,)',
    'failed and due: acquired')
FROM idem_acquire('inbox', 'book', 'failed');
SELECT is(ROW(state, attempt, failures, error, claimable_at, claimed_at > first_seen_at, expires_at - claimed_at)::text,
    '(done,2,1,,,t,"30 days")', 'done already, failures remembered, the error not')
FROM idem_lookup('inbox', 'book', 'failed');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'given back: acquired')
FROM idem_acquire('inbox', 'book', 'given back');
SELECT is(ROW(state, attempt, failures)::text, '(done,2,0)', 'no failure')
FROM idem_lookup('inbox', 'book', 'given back');

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,2,,,)',
    'expired: acquired; its attempts go on')
FROM idem_acquire('inbox', 'book', 'expired');
SELECT is(ROW(state, attempt, failures, first_seen_at >= now(), claimed_at, expires_at - first_seen_at, fingerprint,
        result)::text, '(done,2,0,t,,"30 days",,)', 'as a new event: first seen now, with nothing of the old')
FROM idem_lookup('inbox', 'book', 'expired');
SELECT is(count(*), 1::bigint, 'in one row') FROM inbox WHERE key = idem_key('book', 'expired');

-- Given back or failed in its own transaction

SELECT is(outcome, 'acquired', 'acquired') FROM idem_acquire('inbox', 'book', 'twice');
SELECT idem_release('inbox', 'book', 'twice') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'given back, then acquired again')
FROM idem_acquire('inbox', 'book', 'twice');
SELECT is(outcome, 'busy', 'and open again') FROM idem_acquire('inbox', 'book', 'twice');
SELECT idem_release('inbox', 'book', 'twice', error => 'no') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,3)', 'failed, then acquired again: the attempt grows on')
FROM idem_acquire('inbox', 'book', 'twice');
SELECT idem_commit('inbox', 'book', 'twice') \g /dev/null
SELECT is(outcome, 'duplicate', 'and settled') FROM idem_acquire('inbox', 'book', 'twice');

-- Many events, many calls in one statement

SELECT is(ROW(count(*), count(*) FILTER (WHERE acquired), sum(attempt))::text, '(2000,1000,2000)',
    'each of a thousand events in one statement is acquired once')
FROM generate_series(0, 1999) n, idem_acquire('inbox', 'many', (n % 1000)::text);
SELECT is(count(*), 1000::bigint, 'all of them there') FROM inbox WHERE handler = 'many';
SELECT is(count(idem_commit('inbox', 'many', n::text)), 1000::bigint, 'all of them settled')
FROM generate_series(0, 999) n;
SELECT is(count(*), 1000::bigint, 'all of them known')
FROM generate_series(0, 999) n, idem_acquire('inbox', 'many', n::text) WHERE outcome = 'duplicate';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA acquire CASCADE;
