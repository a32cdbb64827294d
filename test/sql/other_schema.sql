-- The extension may live in any schema, in search_path or not; and it may go and come back while a session lives.
BEGIN;
SELECT plan(23);

-- This session knows the extension where it was.
SELECT idem_create_table('inbox') \g /dev/null
SELECT is(outcome, 'acquired', 'an event') FROM idem_accept('inbox', 'book', 'e');
SELECT throws_ok('DROP EXTENSION idem', '2BP01', 'cannot drop extension idem because other objects depend on it',
    'while there is a dedup table, the extension stays');

SAVEPOINT here;
SET LOCAL client_min_messages = warning;
DROP EXTENSION idem CASCADE;
SELECT hasnt_function('idem_accept', 'the extension is gone');
CREATE SCHEMA "Other ""Schema.1";
CREATE EXTENSION idem SCHEMA "Other ""Schema.1";
SELECT throws_ok($$SELECT idem_create_table('inbox')$$, '42883', NULL, 'it is not where it was');

SELECT is("Other ""Schema.1".idem_create_table('outbox', mode => 'lease', generations => 2)::text, 'outbox',
    'a dedup table is made');
SELECT is(reloftype::regtype::text, '"Other ""Schema.1".idem_event', 'OF the type there')
FROM pg_class WHERE oid = 'outbox'::regclass;
SELECT is(count(*), 1::bigint, 'registered there')
FROM "Other ""Schema.1".idem_registry JOIN "Other ""Schema.1".idem_control USING (dedup);
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'acquired')
FROM "Other ""Schema.1".idem_acquire('outbox', 'send', 'e', NULL, "Other ""Schema.1".idem_fingerprint('x'::text));
SELECT is(ROW(outcome, attempt)::text, '(busy,1)', 'busy') FROM "Other ""Schema.1".idem_acquire('outbox', 'send', 'e');
SELECT lives_ok($$SELECT "Other ""Schema.1".idem_extend('outbox', 'send', 'e', attempt => 1)$$, 'extended');
SELECT lives_ok($$SELECT "Other ""Schema.1".idem_commit('outbox', 'send', 'e', result => '1', attempt => 1)$$,
    'committed');
SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'duplicate')
FROM "Other ""Schema.1".idem_acquire('outbox', 'send', 'e');
SELECT is(ROW(state, result)::text, '(done,1)', 'looked up') FROM "Other ""Schema.1".idem_lookup('outbox', 'send', 'e');
SELECT is(outcome, 'backoff', 'released') FROM "Other ""Schema.1".idem_release('outbox', 'send', 'e2', error => 'no');
SELECT is("Other ""Schema.1".idem_key('h', 'e'), '2149cf72-94e4-0fc3-c1fd-b0012770de93', 'keys are what they were');
DELETE FROM "Other ""Schema.1".idem_control;
DELETE FROM "Other ""Schema.1".idem_registry;
SELECT lives_ok($$SELECT "Other ""Schema.1".idem_attach_table('outbox')$$, 'attached');
SELECT is(outcome, 'duplicate', 'and known') FROM "Other ""Schema.1".idem_acquire('outbox', 'send', 'e');
SELECT is_empty(
    $$SELECT pg_describe_object(d.classid, d.objid, 0)
      FROM pg_depend d JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
      WHERE d.deptype = 'e' AND extname = 'idem'
        AND pg_describe_object(d.classid, d.objid, 0) NOT LIKE '%"Other ""Schema.1".%'$$,
    'nothing of it is anywhere else');
ROLLBACK TO SAVEPOINT here;

SELECT is(outcome, 'duplicate', 'rolled back, it is where it was, and the table remembers')
FROM idem_accept('inbox', 'book', 'e');
SELECT is(outcome, 'acquired', 'and goes on') FROM idem_accept('inbox', 'book', 'e2');

-- Its own objects can't be dropped one by one, nor taken for a dedup table

SELECT throws_ok('DROP FUNCTION idem_key', '2BP01',
    'cannot drop function idem_key(text,text,text) because extension idem requires it');
SELECT throws_ok('DROP TABLE idem_control', '2BP01', 'cannot drop table idem_control because extension idem requires it');

DROP TABLE inbox;
SELECT lives_ok('DROP EXTENSION idem', 'without a dedup table the extension can be dropped');

SELECT * FROM finish();
ROLLBACK;
