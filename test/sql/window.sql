-- Windows that run out by themselves. They are so short that they have run out by the next statement, which has a
-- transaction of its own; so this file asks first and judges the answers afterwards.
CREATE SCHEMA windows;
SET search_path = windows, public;

SELECT idem_create_table('lease', '1 microsecond', '1 day', 'lease') \g /dev/null
SELECT idem_create_table('brief', '1 microsecond', '2 microseconds') \g /dev/null
SELECT idem_create_table('brief_lease', '1 microsecond', '2 microseconds', 'lease') \g /dev/null
CREATE TABLE answer (n serial, what text, have text, want text);
CREATE PROCEDURE ask(what text, call text, want text) LANGUAGE plpgsql AS $$
DECLARE
    have text;
BEGIN
    EXECUTE call INTO have;
    INSERT INTO answer (what, have, want) VALUES (what, have, want);
EXCEPTION WHEN OTHERS THEN
    INSERT INTO answer (what, have, want) VALUES (what, SQLSTATE, want);
END $$;

-- A lease
CALL ask('a lease',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('lease', 'send', 'e', owner => 'token-1')$$, '(acquired,1)');
CALL ask('it has run out: taken over',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('lease', 'send', 'e')$$, '(acquired,2)');
CALL ask('and again', $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('lease', 'send', 'e')$$, '(acquired,3)');
CALL ask('silent ends are failures',
    $$SELECT ROW(state, attempt, failures)::text FROM idem_lookup('lease', 'send', 'e')$$, '(processing,3,2)');
CALL ask('the first holder comes too late', $$SELECT '' FROM idem_commit('lease', 'send', 'e', attempt => 1)$$, 'ID001');
CALL ask('the second too', $$SELECT idem_release('lease', 'send', 'e', attempt => 2)::text$$, 'ID001');
CALL ask('the third may extend it',
    $$SELECT (idem_extend('lease', 'send', 'e', attempt => 3) < clock_timestamp() + interval '1 s')::text$$, 'true');
CALL ask('and settle it, though it has run out again',
    $$SELECT '' FROM idem_commit('lease', 'send', 'e', result => '1', attempt => 3)$$, '');
CALL ask('done is done',
    $$SELECT ROW(outcome, attempt, result)::text FROM idem_acquire('lease', 'send', 'e')$$, '(duplicate,3,1)');

-- A settled event
CALL ask('an event',
    $$SELECT ROW(outcome, attempt)::text FROM idem_accept('brief', 'book', 'e', result => '1')$$, '(acquired,1)');
CALL ask('it is forgotten: a new one, but its attempts go on',
    $$SELECT ROW(outcome, attempt, result)::text FROM idem_accept('brief', 'book', 'e')$$, '(acquired,2,)');
SELECT FROM idem_accept('brief', 'book', 'e');
CALL ask('again', $$SELECT ROW(outcome, attempt)::text FROM idem_accept('brief', 'book', 'e')$$, '(acquired,4)');
CALL ask('its old holder has nothing to say',
    $$SELECT '' FROM idem_commit('brief', 'book', 'e', attempt => 1)$$, 'ID001');
CALL ask('the latest neither', $$SELECT '' FROM idem_commit('brief', 'book', 'e', attempt => 4)$$, 'ID002');
CALL ask('a look shows it all the same',
    $$SELECT ROW(state, attempt, expires_at <= clock_timestamp())::text FROM idem_lookup('brief', 'book', 'e')$$,
    '(done,4,t)');
CALL ask('in one row', 'SELECT count(*) FROM brief', '1');

-- A settled lease
CALL ask('a lease',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'e')$$, '(acquired,1)');
CALL ask('settled', $$SELECT '' FROM idem_commit('brief_lease', 'send', 'e', attempt => 1)$$, '');
CALL ask('and forgotten',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'e')$$, '(acquired,2)');
CALL ask('a failed one is kept much longer',
    $$SELECT outcome::text FROM idem_release('brief_lease', 'send', 'e', error => 'no', attempt => 2)$$, 'backoff');
CALL ask('to be taken again',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'e')$$, '(acquired,3)');
CALL ask('with its failures',
    $$SELECT ROW(attempt, failures)::text FROM idem_lookup('brief_lease', 'send', 'e')$$, '(3,1)');

-- Within one transaction nothing that it did is forgotten
BEGIN;
CALL ask('an event', $$SELECT outcome::text FROM idem_acquire('brief', 'book', 'within')$$, 'acquired');
CALL ask('open still', $$SELECT outcome::text FROM idem_acquire('brief', 'book', 'within')$$, 'busy');
CALL ask('settled', $$SELECT '' FROM idem_commit('brief', 'book', 'within')$$, '');
CALL ask('known still', $$SELECT outcome::text FROM idem_acquire('brief', 'book', 'within')$$, 'duplicate');
CALL ask('a lease',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'within')$$, '(acquired,1)');
CALL ask('held still',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'within')$$, '(busy,1)');
CALL ask('and settled', $$SELECT '' FROM idem_commit('brief_lease', 'send', 'within')$$, '');
CALL ask('known still',
    $$SELECT ROW(outcome, attempt)::text FROM idem_acquire('brief_lease', 'send', 'within')$$, '(duplicate,1)');
COMMIT;
CALL ask('forgotten with the transaction',
    $$SELECT ROW(outcome, attempt)::text FROM idem_accept('brief', 'book', 'within')$$, '(acquired,2)');

BEGIN;
SELECT plan(31);
SELECT is(have, want, n || ': ' || what) FROM answer ORDER BY n;
SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA windows CASCADE;
