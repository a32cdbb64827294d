-- idem in a schema of its own: the privileges that docs/own_schema.md names are all that an application needs.
BEGIN;
SELECT plan(14);
SET LOCAL client_min_messages = warning;
DROP EXTENSION idem CASCADE;
CREATE SCHEMA dedup;
CREATE EXTENSION idem SCHEMA dedup;
SELECT dedup.idem_create_table('dedup.inbox', generations => 3) \g /dev/null
CREATE ROLE idem_app;
GRANT USAGE ON SCHEMA dedup TO idem_app;
GRANT INSERT, UPDATE ON dedup.inbox TO idem_app;

SELECT is_empty($$SELECT oid::regclass FROM pg_class
    WHERE relname LIKE 'inbox%' AND relnamespace <> 'dedup'::regnamespace$$, 'nothing of a dedup table is anywhere else');

SET LOCAL ROLE idem_app;
SELECT is(outcome, 'acquired', 'accepts') FROM dedup.idem_accept('dedup.inbox', 'book', 'evt_1');
SELECT is(outcome, 'acquired', 'acquires') FROM dedup.idem_acquire('dedup.inbox', 'book', 'evt_2');
SELECT ok(dedup.idem_commit('dedup.inbox', 'book', 'evt_2', result => '1') > now(), 'commits');
SELECT is(result, '1', 'is told the stored result') FROM dedup.idem_acquire('dedup.inbox', 'book', 'evt_2');
SELECT is(outcome, 'backoff', 'releases') FROM dedup.idem_release('dedup.inbox', 'book', 'evt_3', error => 'no', retry_after => '1 h');
SELECT is(outcome, 'acquired', 'receives') FROM dedup.idem_receive('dedup.inbox', 'book', 'evt_4');
SELECT throws_ok($$SELECT dedup.idem_lookup('dedup.inbox', 'book', 'evt_1')$$, '42501', NULL, 'looking up takes SELECT');
SELECT throws_ok('SELECT FROM dedup.inbox_g0', '42501', NULL, 'partitions are not its business');
SELECT throws_ok('CREATE TABLE dedup.mine ()', '42501', NULL, 'nor is the schema');
RESET ROLE;
GRANT SELECT ON dedup.inbox TO idem_app;
SET LOCAL ROLE idem_app;
SELECT is(state, 'done', 'which is granted') FROM dedup.idem_lookup('dedup.inbox', 'book', 'evt_1');
SELECT results_eq($$SELECT event_id FROM dedup.idem_due('dedup.inbox', 'book', 1)$$, $$VALUES ('evt_4')$$, 'for due events too');
SELECT lives_ok($$SELECT dedup.idem_release('dedup.inbox', 'book', 'evt_4')$$, 'which it settles');
SET LOCAL search_path = public, dedup;
SELECT is(outcome, 'duplicate', 'and with the schema in search_path, no prefix is needed') FROM idem_accept('inbox', 'book', 'evt_1');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
