-- Under REPEATABLE READ and SERIALIZABLE, as far as one session can show it: what the snapshot sees, and what its own
-- transaction did, is judged as always.
CREATE SCHEMA isolation_level;
SET search_path = isolation_level, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox', generations => 4);
    PERFORM idem_create_table('outbox', mode => 'lease', generations => 4);
    PERFORM idem_accept('inbox', 'book', 'done', result => '1', fingerprint => idem_fingerprint('A'::text));
    PERFORM idem_release('inbox', 'book', 'failed', error => 'no');
    PERFORM idem_acquire('outbox', 'send', e, owner => 'token-1')
        FROM unnest(ARRAY['running', 'run out', 'commits', 'fails']) e;
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
END $$;
CALL idem_rotate('inbox');
CALL idem_rotate('outbox');
SELECT FROM idem_accept('inbox', 'book', 'done in the current generation');

SELECT plan(35);

-- The same calls under each level
CREATE FUNCTION judged() RETURNS TABLE (n int, what text, have text, want text) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT 1, 'a new event', outcome::text, 'acquired' FROM idem_acquire('inbox', 'book', 'new');
    RETURN QUERY SELECT 2, 'still open', outcome::text, 'busy' FROM idem_acquire('inbox', 'book', 'new');
    PERFORM idem_commit('inbox', 'book', 'new', result => '2');
    RETURN QUERY SELECT 3, 'settled', ROW(outcome, result)::text, '(duplicate,2)'
                 FROM idem_acquire('inbox', 'book', 'new');
    RETURN QUERY SELECT 4, 'done in an older generation', ROW(outcome, result)::text, '(duplicate,1)'
                 FROM idem_acquire('inbox', 'book', 'done');
    RETURN QUERY SELECT 5, 'another fingerprint', outcome::text, 'conflict'
                 FROM idem_acquire('inbox', 'book', 'done', fingerprint => idem_fingerprint('B'::text));
    RETURN QUERY SELECT 6, 'done in the current generation', outcome::text, 'duplicate'
                 FROM idem_accept('inbox', 'book', 'done in the current generation');
    RETURN QUERY SELECT 7, 'failed', ROW(outcome, attempt)::text, '(acquired,2)'
                 FROM idem_acquire('inbox', 'book', 'failed');
    PERFORM idem_commit('inbox', 'book', 'failed');
    RETURN QUERY SELECT 8, 'a lease runs', outcome::text, 'busy' FROM idem_acquire('outbox', 'send', 'running');
    RETURN QUERY SELECT 9, 'its owner', ROW(outcome, attempt)::text, '(acquired,1)'
                 FROM idem_acquire('outbox', 'send', 'running', owner => 'token-1');
    RETURN QUERY SELECT 10, 'a lease ran out', ROW(outcome, attempt)::text, '(acquired,2)'
                 FROM idem_acquire('outbox', 'send', 'run out');
    PERFORM idem_commit('outbox', 'send', 'commits', result => '3', attempt => 1);
    RETURN QUERY SELECT 11, 'committed', ROW(outcome, result)::text, '(duplicate,3)'
                 FROM idem_acquire('outbox', 'send', 'commits');
    RETURN QUERY SELECT 12, 'fails', ROW(outcome, error)::text, '(backoff,no)'
                 FROM idem_release('outbox', 'send', 'fails', error => 'no', attempt => 1);
    RETURN QUERY SELECT 13, 'failed just now', ROW(outcome, attempt)::text, '(acquired,2)'
                 FROM idem_acquire('outbox', 'send', 'fails');
    RETURN QUERY SELECT 14, 'looked up', ROW(state, slot)::text, '(processing,1)'
                 FROM idem_lookup('outbox', 'send', 'fails');
    BEGIN
        PERFORM idem_acquire('inbox', 'book', 'in a savepoint');
        RAISE EXCEPTION SQLSTATE 'XX999';
    EXCEPTION WHEN SQLSTATE 'XX999' THEN
    END;
    RETURN QUERY SELECT 15, 'rolled back with its savepoint', ROW(outcome, attempt)::text, '(acquired,1)'
                 FROM idem_acquire('inbox', 'book', 'in a savepoint');
    PERFORM idem_commit('inbox', 'book', 'in a savepoint');
END $$;

BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT is(have, want, 'repeatable read: ' || what) FROM judged() ORDER BY n;
ROLLBACK;

BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT is(have, want, 'serializable: ' || what) FROM judged() ORDER BY n;
ROLLBACK;

-- A REPEATABLE READ transaction that commits: what it did is there.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT is(have, want, 'repeatable read, then committed: ' || what) FROM judged() WHERE n IN (1, 7, 10, 11) ORDER BY n;
COMMIT;
SELECT bag_eq(
    $$SELECT event_id::text COLLATE "default", state, attempt, slot FROM inbox
      UNION ALL SELECT event_id, state, attempt, slot FROM outbox$$,
    $$VALUES ('new', 'done'::idem_state, 1, 1::smallint), ('done', 'done', 1, 0),
             ('done in the current generation', 'done', 1, 1), ('failed', 'done', 2, 1),
             ('in a savepoint', 'done', 1, 1), ('running', 'processing', 1, 0), ('run out', 'processing', 2, 1),
             ('commits', 'done', 1, 1), ('fails', 'processing', 2, 1)$$,
    'its rows are there once each');

SELECT * FROM finish();
SET client_min_messages = warning;
DROP SCHEMA isolation_level CASCADE;
