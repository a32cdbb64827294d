-- The fingerprint: the same event with other content is a conflict, before anything else that a live row says.
CREATE SCHEMA conflict;
SET search_path = conflict, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_accept('inbox', 'book', e, fingerprint => idem_fingerprint('10.00'::text), result => '1')
        FROM unnest(ARRAY['done', 'expired']) e;
    PERFORM idem_accept('inbox', 'book', 'done unchecked', result => '1');
    PERFORM idem_accept('inbox', 'book', 'done by paths',
                        fingerprint => idem_fingerprint('{"cents": 1000}'::jsonb, 'cents'));
    PERFORM idem_acquire('outbox', 'send', e, fingerprint => idem_fingerprint('10.00'::text), owner => 'token-1')
        FROM unnest(ARRAY['running', 'run out', 'expired', 'failed', 'failed, not due', 'given back', 'dead']) e;
    PERFORM idem_release('outbox', 'send', e, error => 'no', attempt => 1)
        FROM unnest(ARRAY['failed', 'failed, not due']) e;
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE outbox SET claimable_at = now() WHERE event_id IN ('run out', 'expired');
    UPDATE outbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE outbox SET claimable_at = now() + interval '1 hour' WHERE event_id = 'failed, not due';
    UPDATE outbox SET state = 'dead', claimable_at = 'infinity' WHERE event_id = 'dead';
END $$;

BEGIN;
SELECT plan(39);
CREATE TEMP VIEW stored AS
    SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i
    UNION ALL SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;

-- A live row with another fingerprint, whatever its state

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,conflict,1,,,)',
    'done: conflict, and no result is told')
FROM idem_acquire('inbox', 'book', 'done', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(c.first_seen_at, i.first_seen_at, 'first seen when it was')
FROM idem_acquire('inbox', 'book', 'done', fingerprint => idem_fingerprint('99.00'::text)) c, inbox i
WHERE i.key = idem_key('book', 'done');
SELECT is(ROW(acquired, outcome, result)::text, '(f,conflict,)', 'to idem_accept too')
FROM idem_accept('inbox', 'book', 'done', fingerprint => idem_fingerprint('99.00'::text), result => '2');
SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(f,conflict,1,,,)',
    format('%s: conflict', event))
FROM unnest(ARRAY['running', 'run out', 'failed', 'failed, not due', 'given back', 'dead']) event,
     idem_acquire('outbox', 'send', event, fingerprint => idem_fingerprint('99.00'::text));
SELECT is(outcome, 'conflict', 'by paths: conflict')
FROM idem_acquire('inbox', 'book', 'done by paths', fingerprint => idem_fingerprint('{"cents": 9900}'::jsonb, 'cents'));
SELECT is(outcome, 'conflict', 'to the owner of the lease too')
FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(outcome, 'conflict', 'to who would wait, at once')
FROM idem_acquire('outbox', 'send', 'running', wait => '1000 days', fingerprint => idem_fingerprint('99.00'::text));

-- The same fingerprint, or nothing to compare

SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'the same: duplicate')
FROM idem_acquire('inbox', 'book', 'done', fingerprint => idem_fingerprint('10.00'::text));
SELECT is(outcome, 'duplicate', 'the same by paths: duplicate')
FROM idem_acquire('inbox', 'book', 'done by paths',
    fingerprint => idem_fingerprint('{"cents": 1e3, "x": 1}'::jsonb, 'cents'));
SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'none given: duplicate')
FROM idem_acquire('inbox', 'book', 'done');
SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'none stored: duplicate')
FROM idem_acquire('inbox', 'book', 'done unchecked', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(outcome, 'duplicate', 'made in another way: unknown, so duplicate')
FROM idem_acquire('inbox', 'book', 'done by paths', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(outcome, 'duplicate', 'the other way round too')
FROM idem_acquire('inbox', 'book', 'done', fingerprint => idem_fingerprint('{"cents": 9900}'::jsonb, 'cents'));
SELECT is(ROW(outcome, attempt)::text, '(busy,1)', 'the same, and a lease that runs: busy')
FROM idem_acquire('outbox', 'send', 'running', fingerprint => idem_fingerprint('10.00'::text));
SELECT is(outcome, 'acquired', 'the same, and its owner: the same claim')
FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1', fingerprint => idem_fingerprint('10.00'::text));

SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- What is not a live row

SELECT is(outcome, 'acquired', 'another handler''s event is not this one')
FROM idem_acquire('outbox', 'mail', 'running', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(outcome, 'acquired', 'another batch''s neither')
FROM idem_acquire('outbox', 'send', 'running', 'resend', idem_fingerprint('99.00'::text));
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'a settled event that expired is a new one')
FROM idem_acquire('inbox', 'book', 'expired', fingerprint => idem_fingerprint('99.00'::text));
SELECT is(fingerprint, idem_fingerprint('99.00'::text), 'with the new fingerprint')
FROM inbox WHERE event_id = 'expired';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'an unsettled one too')
FROM idem_acquire('outbox', 'send', 'expired', fingerprint => idem_fingerprint('99.00'::text));

-- A retake keeps the fingerprint

SELECT is(outcome, 'acquired', 'the same fingerprint takes over')
FROM idem_acquire('outbox', 'send', 'run out', fingerprint => idem_fingerprint('10.00'::text));
SELECT is(outcome, 'acquired', 'none does') FROM idem_acquire('outbox', 'send', 'failed');
SELECT is(fingerprint, idem_fingerprint('10.00'::text), 'which does not weaken the check')
FROM outbox WHERE event_id = 'failed';
SELECT is(outcome, 'conflict', 'so the next one conflicts still')
FROM idem_acquire('outbox', 'send', 'failed', fingerprint => idem_fingerprint('99.00'::text));

-- Within one transaction

SELECT is(outcome, 'acquired', 'acquired, still open')
FROM idem_acquire('inbox', 'book', 'new', fingerprint => idem_fingerprint('A'::text));
SELECT is(outcome, 'conflict', 'another fingerprint: conflict')
FROM idem_acquire('inbox', 'book', 'new', fingerprint => idem_fingerprint('B'::text));
SELECT is(outcome, 'busy', 'the same: busy')
FROM idem_acquire('inbox', 'book', 'new', fingerprint => idem_fingerprint('A'::text));
SELECT idem_commit('inbox', 'book', 'new') \g /dev/null
SELECT is(outcome, 'conflict', 'settled, another: conflict')
FROM idem_acquire('inbox', 'book', 'new', fingerprint => idem_fingerprint('B'::text));
SELECT is(outcome, 'duplicate', 'the same: duplicate')
FROM idem_acquire('inbox', 'book', 'new', fingerprint => idem_fingerprint('A'::text));
SELECT is(outcome, 'acquired', 'one without a fingerprint')
FROM idem_acquire('inbox', 'book', 'late', owner => 'token-1');
SELECT is(outcome, 'acquired', 'stays so')
FROM idem_acquire('inbox', 'book', 'late', owner => 'token-1', fingerprint => idem_fingerprint('A'::text));
SELECT is(fingerprint, NULL, 'the same claim takes none later') FROM inbox WHERE event_id = 'late';
SELECT is(count(*), 1::bigint, 'one row') FROM inbox WHERE event_id = 'late';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA conflict CASCADE;
