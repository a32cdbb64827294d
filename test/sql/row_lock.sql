-- Locks and changes of an event's row by the caller's own transaction are no obstacle. (Those of others are in
-- test/specs.)
CREATE SCHEMA row_lock;
SET search_path = row_lock, public;

-- An event for each lock, each kind of call, and each of two generations
CREATE TABLE lock_case AS
    SELECT lock, action, generation, format('%s, %s, %s', action, lock, generation) AS event_id
    FROM unnest(ARRAY['KEY SHARE', 'SHARE', 'NO KEY UPDATE', 'UPDATE']) lock,
         unnest(ARRAY['acquire', 'commit', 'release', 'extend', 'record']) action,
         unnest(ARRAY['sealed', 'current']) generation;
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease', generations => 4);
    PERFORM idem_acquire('outbox', 'send', event_id) FROM lock_case WHERE generation = 'sealed';
END $$;
CALL idem_rotate('outbox');
DO $$
BEGIN
    PERFORM idem_acquire('outbox', 'send', event_id) FROM lock_case WHERE generation = 'current';
    PERFORM idem_release('outbox', 'send', event_id, error => 'no', attempt => 1)
        FROM lock_case WHERE action = 'record';
    UPDATE outbox SET claimable_at = now() WHERE event_id LIKE 'acquire,%';
    PERFORM idem_acquire('outbox', 'send', event_id) FROM unnest(ARRAY['deleted', 'updated', 'touched']) event_id;
END $$;

BEGIN;
SELECT plan(89);

CREATE FUNCTION pg_temp.call_on_locked(lock text, action text, event text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT FROM outbox WHERE event_id = %L FOR %s', event, lock);
    CASE action
        WHEN 'acquire' THEN RETURN (SELECT outcome || ' ' || attempt FROM idem_acquire('outbox', 'send', event));
        WHEN 'commit' THEN PERFORM idem_commit('outbox', 'send', event, attempt => 1);
        WHEN 'release' THEN
            RETURN (SELECT outcome || ' ' || attempt
                    FROM idem_release('outbox', 'send', event, error => 'no', attempt => 1));
        WHEN 'extend' THEN PERFORM idem_extend('outbox', 'send', event, attempt => 1);
        WHEN 'record' THEN
            RETURN (SELECT outcome || ' ' || attempt FROM idem_release('outbox', 'send', event, error => 'again'));
    END CASE;
    RETURN 'void';
END $$;

SELECT is(pg_temp.call_on_locked(lock, action, event_id),
    CASE action WHEN 'acquire' THEN 'acquired 2' WHEN 'release' THEN 'backoff 1'
                WHEN 'record' THEN 'backoff 2' ELSE 'void' END,
    format('%s, with a lock FOR %s on a row of a %s generation', action, lock, generation))
FROM lock_case ORDER BY generation, lock, action;
SELECT is(ROW(state, attempt, slot)::text,
    CASE action WHEN 'acquire' THEN '(processing,2,1)' WHEN 'commit' THEN '(done,1,1)'
                WHEN 'release' THEN '(failed,1,1)' WHEN 'extend' THEN '(processing,1,1)'
                WHEN 'record' THEN '(failed,2,1)' END,
    'its row afterwards: ' || event_id)
FROM lock_case JOIN outbox USING (event_id) ORDER BY generation, lock, action;

-- A lock that a savepoint took

SAVEPOINT a;
SELECT FROM outbox WHERE event_id = 'touched' FOR UPDATE;
RELEASE SAVEPOINT a;
SELECT lives_ok($$SELECT idem_extend('outbox', 'send', 'touched', attempt => 1)$$,
    'locked in a savepoint that ended well');
SAVEPOINT a;
SELECT FROM outbox WHERE event_id = 'touched' FOR UPDATE;
SELECT lives_ok($$SELECT idem_extend('outbox', 'send', 'touched', attempt => 1)$$, 'locked in an open savepoint');
ROLLBACK TO SAVEPOINT a;
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'touched', attempt => 1)$$, 'and in one that was rolled back');
SELECT lives_ok($$SELECT FROM outbox WHERE event_id = 'touched' FOR UPDATE$$, 'a row that idem wrote may be locked');
SELECT is(outcome, 'duplicate', 'and is judged as before') FROM idem_acquire('outbox', 'send', 'touched');

-- Changes by the same command

WITH deleted AS (DELETE FROM outbox WHERE event_id = 'deleted' RETURNING event_id)
SELECT is(outcome, 'acquired', 'a row that this very command deletes is gone')
FROM deleted, idem_acquire('outbox', 'send', event_id::text, owner => 'token-1');
SELECT is(count(*), 1::bigint, 'and there again') FROM outbox WHERE event_id = 'deleted';
WITH updated AS (UPDATE outbox SET owner = 'token-2' WHERE event_id = 'updated' RETURNING event_id)
SELECT is(outcome, 'acquired', 'one that it changes is as it has become')
FROM updated, idem_acquire('outbox', 'send', event_id::text, owner => 'token-2');
WITH inserted AS (SELECT outcome FROM idem_acquire('outbox', 'send', 'one command'))
SELECT is(ROW(inserted.outcome, again.outcome, owner.outcome)::text, '(acquired,busy,busy)',
    'and one that it claims is claimed')
FROM inserted, idem_acquire('outbox', 'send', 'one command') again,
     idem_acquire('outbox', 'send', 'one command', owner => 'token-1') owner;

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA row_lock CASCADE;
