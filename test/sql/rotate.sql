-- Generations: how idem_rotate turns the ring, and how events of older generations are found, settled and taken over.
-- idem_rotate commits, so it is called before pgTAP's transaction starts.
CREATE SCHEMA rotate;
SET search_path = rotate, public;

SET client_min_messages = error;

-- The ring turns as long as there is a slot whose events have all expired.
DO $$
BEGIN
    PERFORM idem_create_table('ring', generations => 3);
    PERFORM idem_accept('ring', 'book', 'g0');
END $$;
CREATE TEMP TABLE turn (n serial, oldest bigint, current bigint, slots text);
CREATE PROCEDURE turn() LANGUAGE plpgsql AS $$
BEGIN
    CALL idem_rotate('ring');
    INSERT INTO turn (oldest, current, slots)
        SELECT oldest_generation, current_generation,
               (SELECT string_agg(slot || ':' || event_id, ' ' ORDER BY slot, event_id) FROM ring)
        FROM idem_control WHERE dedup = 'ring'::regclass;
END $$;
CALL turn();
SELECT FROM idem_accept('ring', 'book', 'g1');
CALL turn();
SELECT FROM idem_accept('ring', 'book', 'g2');
CALL turn();
UPDATE ring SET expires_at = now() WHERE event_id = 'g1';
CALL turn();
SELECT FROM idem_accept('ring', 'book', 'still g2');
UPDATE ring SET expires_at = now() WHERE event_id = 'g0';
CALL turn();
SELECT FROM idem_accept('ring', 'book', 'g3');
UPDATE ring SET expires_at = now() WHERE slot = 2;
CALL turn();
CALL turn();

DROP PROCEDURE turn();

-- An ordinary owner turns its own, though it may not write to the registry.
CREATE ROLE regress_idem_owner;
CREATE SCHEMA regress_idem_owner AUTHORIZATION regress_idem_owner;
SET ROLE regress_idem_owner;
SELECT idem_create_table('regress_idem_owner.owned', '1 microsecond', '2 microseconds', generations => 2) \g /dev/null
SELECT FROM idem_accept('regress_idem_owner.owned', 'book', 'g0');
CALL idem_rotate('regress_idem_owner.owned');
CALL idem_rotate('regress_idem_owner.owned');
RESET ROLE;
SELECT ROW(oldest_generation, current_generation)::text AS owned_ring
FROM idem_control WHERE dedup = 'regress_idem_owner.owned'::regclass \gset
SELECT count(*) AS owned_events FROM regress_idem_owner.owned \gset
DROP TABLE regress_idem_owner.owned;
DROP SCHEMA regress_idem_owner;
DROP ROLE regress_idem_owner;

-- Events of two generations: all of these in the older one.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease', generations => 4);
    PERFORM idem_create_table('inbox', generations => 4);
    PERFORM idem_accept('inbox', 'book', e, fingerprint => idem_fingerprint('A'::text), result => '1')
        FROM unnest(ARRAY['done', 'expired']) e;
    PERFORM idem_release('inbox', 'book', 'failed', error => 'no');
    PERFORM idem_acquire('outbox', 'send', e, payload => jsonb_build_object('text', repeat(md5(e), 500)),
                         owner => 'token-1', fingerprint => idem_fingerprint('A'::text))
        FROM unnest(ARRAY['running', 'commits', 'fails', 'gives', 'extends', 'run out', 'failed']) e;
    PERFORM idem_release('outbox', 'send', 'failed', error => repeat('why ', 5000), attempt => 1);
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
END $$;
CALL idem_rotate('inbox');
CALL idem_rotate('inbox');
CALL idem_rotate('outbox');

BEGIN;
SELECT plan(45);

-- Turning

SELECT results_eq(
    'SELECT oldest, current, slots FROM turn ORDER BY n',
    $$VALUES (0::bigint, 1::bigint, '0:g0'),
             (0, 2, '0:g0 1:g1'),
             (0, 2, '0:g0 1:g1 2:g2'),
             (0, 2, '0:g0 1:g1 2:g2'),
             (2, 3, '2:g2 2:still g2'),
             (3, 4, '0:g3'),
             (3, 5, '0:g3')$$,
    'the ring turns: open the next, keep what lives, empty the oldest ones that have expired, go round');
SELECT is(outcome, 'duplicate', 'an event of an older generation is known') FROM idem_accept('ring', 'book', 'g3');
SELECT is(attempt, 1, 'one that was emptied is not') FROM idem_accept('ring', 'book', 'g0');
SELECT is(slot, 2::smallint, 'new events go to the current slot') FROM ring WHERE event_id = 'g0';

SELECT is(:'owned_ring'::text, '(1,2)', 'an ordinary owner turns it');
SELECT is(:owned_events, 0, 'and empties it');

-- Refused

SELECT throws_ok('CALL idem_rotate(NULL)', '22004', 'dedup must not be null');
SELECT throws_ok($$CALL idem_rotate('ring')$$, '25001', 'idem_rotate cannot run inside a transaction block',
    'it commits, so it can''t be called in a transaction block');
SELECT throws_ok($$DO 'BEGIN CALL idem_rotate(''ring''); END'$$, '25001',
    'idem_rotate cannot run inside a transaction block', 'not in a DO there either');

-- Events of an older generation: where nothing changes, they stay there

CREATE TEMP VIEW stored AS
    SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, i) AS version FROM inbox i
    UNION ALL SELECT concat_ws(' ', tableoid, ctid, xmin, xmax, o) FROM outbox o;
CREATE TEMP TABLE stored_before AS TABLE stored;
SELECT is(ROW(outcome, attempt, result)::text, '(duplicate,1,1)', 'done: duplicate')
FROM idem_acquire('inbox', 'book', 'done');
SELECT is(outcome, 'conflict', 'another fingerprint: conflict')
FROM idem_accept('inbox', 'book', 'done', fingerprint => idem_fingerprint('B'::text));
SELECT is(ROW(state, slot)::text, '(done,0)', 'a look') FROM idem_lookup('inbox', 'book', 'done');
SELECT is(ROW(outcome, attempt)::text, '(busy,1)', 'a lease runs: busy') FROM idem_acquire('outbox', 'send', 'running');
SELECT is(ROW(outcome, attempt)::text, '(acquired,1)', 'its owner: the same claim')
FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'done', result => '1', attempt => 1)$$,
    'the same settling again');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'running', attempt => 2)$$, 'ID002', NULL,
    'an attempt that never was');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'never', attempt => 1)$$, 'ID002', NULL,
    'an event that never was');
SELECT set_eq('TABLE stored', 'TABLE stored_before', 'none of this wrote anything');

-- Where something changes, they go to the current one

SELECT is(count(*), 7::bigint, 'all of them are in slot 0')
FROM outbox WHERE slot = 0 AND tableoid = 'outbox_g0'::regclass;
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'commits', result => '2', attempt => 1)$$,
    'a lease is committed');
SELECT is(ROW(slot, tableoid::regclass, state, attempt, owner, result, payload,
        fingerprint = idem_fingerprint('A'::text))::text,
    '(1,outbox_g1,done,1,token-1,2,,t)', 'in the current slot, as it was') FROM outbox WHERE event_id = 'commits';
SELECT is(outcome, 'backoff', 'one fails') FROM idem_release('outbox', 'send', 'fails', error => 'no', attempt => 1);
SELECT is(ROW(slot, state, failures, error, payload = jsonb_build_object('text', repeat(md5('fails'), 500)))::text,
    '(1,failed,1,no,t)', 'with its payload') FROM outbox WHERE event_id = 'fails';
SELECT is(outcome, 'backoff', 'one is given back') FROM idem_release('outbox', 'send', 'gives', attempt => 1);
SELECT is(ROW(slot, state, failures, payload = jsonb_build_object('text', repeat(md5('gives'), 500)))::text,
    '(1,pending,0,t)', 'with its payload') FROM outbox WHERE event_id = 'gives';
SELECT ok(idem_extend('outbox', 'send', 'extends', attempt => 1) > now() + interval '14 minutes', 'one is extended');
SELECT is(ROW(slot, state, attempt, payload = jsonb_build_object('text', repeat(md5('extends'), 500)))::text,
    '(1,processing,1,t)', 'with its payload') FROM outbox WHERE event_id = 'extends';
SELECT is(ROW(outcome, attempt)::text, '(acquired,2)', 'one that ran out is taken over')
FROM idem_acquire('outbox', 'send', 'run out', owner => 'token-2');
SELECT is(ROW(slot, state, attempt, failures, owner,
        payload = jsonb_build_object('text', repeat(md5('run out'), 500)))::text,
    '(1,processing,2,1,token-2,t)', 'with its payload') FROM outbox WHERE event_id = 'run out';
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'run out', attempt => 1)$$, 'ID001',
    'lease lost on event "run out" of handler "send"', 'its earlier holder comes too late');
SELECT is(ROW(outcome, attempt)::text, '(backoff,2)', 'a failure is recorded on a failed one')
FROM idem_release('outbox', 'send', 'failed', error => 'again');
SELECT is(ROW(slot, state, attempt, failures, error)::text, '(1,failed,2,2,again)', 'there')
FROM outbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'in transaction mode, a failed one is acquired')
FROM idem_acquire('inbox', 'book', 'failed');
SELECT is(ROW(slot, state, failures)::text, '(2,done,1)', 'there') FROM inbox WHERE event_id = 'failed';
SELECT idem_commit('inbox', 'book', 'failed', result => '3') \g /dev/null
SELECT is(ROW(slot, result)::text, '(2,3)', 'and settled') FROM inbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'an expired one is acquired; its attempts go on')
FROM idem_acquire('inbox', 'book', 'expired', fingerprint => idem_fingerprint('B'::text));
SELECT is(ROW(slot, state, first_seen_at >= now(), result)::text, '(2,done,t,)', 'as a new one')
FROM inbox WHERE event_id = 'expired';
SELECT is(outcome, 'acquired', 'a new event') FROM idem_accept('inbox', 'book', 'new');
SELECT is(slot, 2::smallint, 'is there anyway') FROM inbox WHERE event_id = 'new';
SELECT is_empty($$SELECT key FROM inbox GROUP BY key HAVING count(*) > 1
                  UNION ALL SELECT key FROM outbox GROUP BY key HAVING count(*) > 1$$,
    'no event is in two places');

-- A move is rolled back with its savepoint

SAVEPOINT a;
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'running', result => '9', attempt => 1)$$,
    'committed in a savepoint');
ROLLBACK TO SAVEPOINT a;
SELECT is(ROW(slot, state)::text, '(0,processing)', 'rolled back, it is where it was')
FROM outbox WHERE event_id = 'running';
SELECT is(outcome, 'busy', 'and as it was') FROM idem_acquire('outbox', 'send', 'running');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'running', result => '9', attempt => 1)$$, 'committed outside');
SELECT is(ROW(slot, state)::text, '(1,done)', 'it is in the current one') FROM outbox WHERE event_id = 'running';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA rotate CASCADE;
