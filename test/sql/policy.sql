-- Policies: what a handler does not say is its table's, and what the table does not say is the default's. A change is
-- refused as a whole where it contradicts itself, and holds from the next call on.
BEGIN;
SELECT plan(105);

SELECT idem_create_table('inbox') \g /dev/null
SELECT idem_create_table('outbox', '1 minute', '1 day', 'lease') \g /dev/null
CREATE FUNCTION pg_temp.policy(table_name text, handler_name text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(', ', mode, hot_window, cold_window, unresolved_window, max_attempts, backoff_base, backoff_cap,
                     on_unavailable, check_stale)
    FROM idem_policy WHERE dedup::text = table_name AND handler IS NOT DISTINCT FROM handler_name
$$;

-- Inheritance

SELECT is(pg_temp.policy('inbox'), 'transaction, 00:15:00, 30 days, 365 days, 10, 00:00:10, 01:00:00, reject, t',
    'the defaults');
SELECT is(pg_temp.policy('outbox'), 'lease, 00:01:00, 1 day, 365 days, 10, 00:00:10, 01:00:00, reject, t',
    'what idem_create_table was told');
SELECT is(pg_temp.policy('inbox', 'book'), NULL, 'a handler has no row of its own at first');
SELECT lives_ok($$SELECT idem_set_policy('inbox', 'book', max_attempts => 3)$$, 'it is given one');
SELECT is(pg_temp.policy('inbox', 'book'), 'transaction, 00:15:00, 30 days, 365 days, 3, 00:00:10, 01:00:00, reject, t',
    'with what it inherits');
SELECT lives_ok($$SELECT idem_set_policy('inbox', 'book', '10 s', '1 hour', 'lease', NULL, '1 s', '1 min', 'allow', '2 days',
                                         false)$$, 'everything else');
SELECT is(pg_temp.policy('inbox', 'book'), 'lease, 00:00:10, 01:00:00, 2 days, 3, 00:00:01, 00:01:00, allow, f',
    'what was set; what was null stays as it was');
SELECT is(pg_temp.policy('inbox'), 'transaction, 00:15:00, 30 days, 365 days, 10, 00:00:10, 01:00:00, reject, t',
    'the table''s stays as it was');
SELECT lives_ok($$SELECT idem_set_policy('inbox', NULL, '20 min', '40 days', 'transaction', 7, '2 s', '2 min', 'allow',
                                         '3 days', false)$$, 'the table''s');
SELECT is(pg_temp.policy('inbox'), 'transaction, 00:20:00, 40 days, 3 days, 7, 00:00:02, 00:02:00, allow, f', 'is set');
SELECT is(pg_temp.policy('inbox', 'book'), 'lease, 00:00:10, 01:00:00, 2 days, 3, 00:00:01, 00:01:00, allow, f',
    'the handler''s stays as it was');
SELECT lives_ok($$SELECT idem_set_policy('inbox', 'send', mode => 'lease')$$, 'another handler');
SELECT is(pg_temp.policy('inbox', 'send'), 'lease, 00:20:00, 40 days, 3 days, 7, 00:00:02, 00:02:00, allow, f',
    'inherits what the table was given');
SELECT lives_ok($$SELECT idem_set_policy('inbox', on_unavailable => 'reject', check_stale => true)$$, 'a change');
SELECT is(pg_temp.policy('inbox', 'send'), 'lease, 00:20:00, 40 days, 3 days, 7, 00:00:02, 00:02:00, reject, t',
    'it inherits that too');
SELECT results_eq($$SELECT dedup::text, handler FROM idem_policy ORDER BY 1, 2$$,
    $$VALUES ('inbox', 'book' COLLATE "C"), ('inbox', 'send'), ('inbox', NULL), ('outbox', NULL)$$,
    'one row a table, and one a handler');
SELECT is(idem_reset_policy('inbox', 'book'), true, 'a handler forgets its own');
SELECT is(pg_temp.policy('inbox', 'book'), NULL, 'it has none');
SELECT is(idem_reset_policy('inbox', 'book'), false, 'and has none to forget');
SELECT is(idem_reset_policy('outbox', 'send'), false, 'nor what another table''s handler of the same name has');
SELECT is(pg_temp.policy('inbox', 'send'), 'lease, 00:20:00, 40 days, 3 days, 7, 00:00:02, 00:02:00, reject, t', 'indeed');
SELECT idem_reset_policy('inbox', 'send') \g /dev/null

-- What a policy says is what is done, from the next call on; handlers of one table may differ

SELECT idem_set_policy('inbox', 'bot-reply', mode => 'lease', hot_window => '10 s', cold_window => '1 hour',
    unresolved_window => '1 day') \g /dev/null
SELECT idem_acquire('inbox', 'charge-wallet', 'e'), idem_acquire('inbox', 'bot-reply', 'e') \g /dev/null
SELECT results_eq($$SELECT handler, state::text, claimable_at - first_seen_at, expires_at - first_seen_at FROM inbox
                    ORDER BY 1$$,
    $$VALUES ('bot-reply' COLLATE "C", 'processing', interval '10 s', interval '1 day 10 s'),
             ('charge-wallet', 'done', NULL, '40 days')$$,
    'one handler claims with its transaction, the other a lease');
SELECT idem_commit('inbox', 'charge-wallet', 'e'), idem_commit('inbox', 'bot-reply', 'e') \g /dev/null
SELECT is(expires_at - settled_at, interval '1 hour', 'which is remembered for its own window')
FROM inbox WHERE handler = 'bot-reply';
SELECT is(ROW(outcome, retry_after BETWEEN 9 AND 10)::text, '(acquired,)', 'a lease')
FROM idem_acquire('inbox', 'bot-reply', 'e 2');
SELECT is(ROW(outcome, attempt)::text, '(backoff,1)', 'fails') FROM idem_release('inbox', 'bot-reply', 'e 2', error => 'no');
SELECT is(expires_at - claimable_at, interval '1 day', 'and is kept for its own window')
FROM inbox WHERE event_id = 'e 2';

SELECT idem_set_policy('inbox', 'bot-reply', max_attempts => 2) \g /dev/null
SELECT idem_acquire('inbox', 'bot-reply', 'e 2') \g /dev/null
SELECT is(outcome, 'dead', 'two attempts') FROM idem_release('inbox', 'bot-reply', 'e 2', error => 'no');
SELECT idem_acquire('inbox', 'charge-wallet', 'e 2') \g /dev/null
SELECT idem_release('inbox', 'charge-wallet', 'e 2', error => 'no') \g /dev/null
SELECT idem_acquire('inbox', 'charge-wallet', 'e 2') \g /dev/null
SELECT is(outcome, 'backoff', 'are not the table''s seven') FROM idem_release('inbox', 'charge-wallet', 'e 2', error => 'no');

SELECT is(outcome, 'stale', 'what is too old for the table')
FROM idem_accept('inbox', 'charge-wallet', 'old', occurred_at => clock_timestamp() - interval '50 days');
SELECT is(outcome, 'stale', 'is not always what is for a handler')
FROM idem_acquire('inbox', 'bot-reply', 'old', occurred_at => clock_timestamp() - interval '2 hours');
SELECT is(outcome, 'acquired', 'indeed')
FROM idem_accept('inbox', 'charge-wallet', 'old', occurred_at => clock_timestamp() - interval '2 hours');
SELECT idem_set_policy('inbox', 'bot-reply', check_stale => false) \g /dev/null
SELECT is(outcome, 'acquired', 'a handler for which nothing is')
FROM idem_acquire('inbox', 'bot-reply', 'old', occurred_at => '2000-01-01');
SELECT is(outcome, 'acquired', 'whatever function is asked')
FROM idem_receive('inbox', 'bot-reply', 'old 2', occurred_at => '2000-01-01');
SELECT is(outcome, 'stale', 'for others it is as before')
FROM idem_receive('inbox', 'charge-wallet', 'old 2', occurred_at => '2000-01-01');
SELECT throws_ok($$SELECT idem_acquire('inbox', 'bot-reply', 'w', hot_window => '11 s')$$, '22023',
    'hot_window is longer than that of dedup table "inbox"', 'a call may not ask for more than its handler''s window');
SELECT lives_ok($$SELECT idem_acquire('inbox', 'other', 'w', hot_window => '11 s');
                  SELECT idem_commit('inbox', 'other', 'w')$$, 'while another handler may');
SELECT idem_acquire('inbox', 'bot-reply', 'w') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'bot-reply', 'w', cold_window => '61 min')$$, '22023',
    'cold_window is longer than that of dedup table "inbox"', 'nor be remembered for longer');
SELECT idem_commit('inbox', 'bot-reply', 'w') \g /dev/null

-- A change while a claim is open

SELECT idem_acquire('inbox', 'changes', e) FROM unnest(ARRAY['a', 'b', 'c']) e \g /dev/null
SELECT idem_set_policy('inbox', 'changes', mode => 'lease') \g /dev/null
SELECT lives_ok($$SELECT idem_commit('inbox', 'changes', 'a')$$, 'a claim of the transaction is settled as it was made');
SELECT is(outcome, 'backoff', 'or released') FROM idem_release('inbox', 'changes', 'b', error => 'no');
SELECT is(outcome, 'busy', 'or open still') FROM idem_acquire('inbox', 'changes', 'c');
SELECT lives_ok($$SELECT idem_commit('inbox', 'changes', 'c', result => '1')$$, 'until it is settled too');
SELECT idem_acquire('inbox', 'changes', e) FROM unnest(ARRAY['d', 'e']) e \g /dev/null
SELECT idem_reset_policy('inbox', 'changes') \g /dev/null
SELECT lives_ok($$SELECT idem_commit('inbox', 'changes', 'd')$$, 'a lease too');
SELECT is(outcome, 'backoff', 'or released') FROM idem_release('inbox', 'changes', 'e', error => 'no');
SELECT results_eq($$SELECT ROW(event_id, state, claimable_at IS NULL)::text FROM inbox WHERE handler = 'changes' ORDER BY 1$$,
    ARRAY['(a,done,t)', '(b,failed,f)', '(c,done,t)', '(d,done,t)', '(e,failed,f)'], 'as it should be');

-- Rolled back, a change is none

SAVEPOINT a;
SELECT idem_set_policy('inbox', 'rolled-back', mode => 'lease') \g /dev/null
SELECT idem_acquire('inbox', 'rolled-back', 'e') \g /dev/null
SELECT is(state, 'processing', 'a change in a savepoint') FROM inbox WHERE handler = 'rolled-back';
ROLLBACK TO SAVEPOINT a;
SELECT idem_acquire('inbox', 'rolled-back', 'e') \g /dev/null
SELECT is(state, 'done', 'goes with it') FROM inbox WHERE handler = 'rolled-back';
SELECT idem_commit('inbox', 'rolled-back', 'e') \g /dev/null

-- What is refused

SELECT idem_set_policy('inbox', 'narrow', '10 min', '20 days', backoff_base => '10 s', backoff_cap => '1 min') \g /dev/null
CREATE TEMP TABLE before AS TABLE idem_policy;
SELECT throws_ok(format($$SELECT idem_set_policy('inbox', %s)$$, arguments), code, message, arguments)
FROM (VALUES
    ($$hot_window => '40 days'$$, '22023', 'hot_window must be shorter than cold_window'),
    ($$cold_window => '20 min'$$, '22023', 'hot_window must be shorter than cold_window'),
    ($$hot_window => '2 days', cold_window => '1 day'$$, '22023', 'hot_window must be shorter than cold_window'),
    ($$hot_window => '0'$$, '22023', 'hot_window must be positive'),
    ($$hot_window => '-1 s'$$, '22023', 'hot_window must be positive'),
    ($$cold_window => '1 month'$$, '22023', 'cold_window has no fixed length'),
    ($$cold_window => '3661 days'$$, '22023', 'cold_window is too long'),
    ($$unresolved_window => '0'$$, '22023', 'unresolved_window must be positive'),
    ($$unresolved_window => '1 year'$$, '22023', 'unresolved_window has no fixed length'),
    ($$unresolved_window => '3661 days'$$, '22023', 'unresolved_window is too long'),
    ($$mode => 'Lease'$$, '22023', 'invalid mode "Lease"'),
    ($$mode => ''$$, '22023', 'invalid mode ""'),
    ($$max_attempts => 0$$, '22023', 'max_attempts must be 1 to 1000000, not 0'),
    ($$max_attempts => -1$$, '22023', 'max_attempts must be 1 to 1000000, not -1'),
    ($$max_attempts => 1000001$$, '22023', 'max_attempts must be 1 to 1000000, not 1000001'),
    ($$backoff_base => '3 min'$$, '22023', 'backoff_base must not be longer than backoff_cap'),
    ($$backoff_cap => '1 s'$$, '22023', 'backoff_base must not be longer than backoff_cap'),
    ($$backoff_base => '-1 s'$$, '22023', 'backoff_base must be positive'),
    ($$backoff_cap => '1 month'$$, '22023', 'backoff_cap has no fixed length'),
    ($$backoff_cap => '3661 days'$$, '22023', 'backoff_cap is too long'),
    ($$on_unavailable => 'ignore'$$, '22023', 'invalid on_unavailable "ignore"'),
    ($$'', mode => 'lease'$$, '22023', 'handler must not be empty'),
    ($$repeat('x', 256), mode => 'lease'$$, '22023', 'handler is too long'),
    ($$'new', '21 min'$$, '22023', 'hot_window must not be longer than the table''s, for handler "new"'),
    ($$'new', cold_window => '41 days'$$, '22023', 'cold_window must not be longer than the table''s, for handler "new"'),
    ($$'new', cold_window => '20 min'$$, '22023', 'hot_window must be shorter than cold_window, for handler "new"'),
    ($$'new', backoff_base => '3 min'$$, '22023', 'backoff_base must not be longer than backoff_cap, for handler "new"'),
    ($$'narrow', '21 min'$$, '22023', 'hot_window must not be longer than the table''s, for handler "narrow"'),
    ($$hot_window => '9 min'$$, '22023', 'hot_window must not be longer than the table''s, for handler "narrow"'),
    ($$cold_window => '19 days'$$, '22023', 'cold_window must not be longer than the table''s, for handler "narrow"')
) r (arguments, code, message);
SELECT throws_ok('SELECT ' || call, code, message, call)
FROM (VALUES
    ($$idem_set_policy(NULL, mode => 'lease')$$, '22004', 'dedup must not be null'),
    ($$idem_reset_policy(NULL, 'narrow')$$, '22004', 'dedup must not be null'),
    ($$idem_reset_policy('inbox', NULL)$$, '22004', 'handler must not be null'),
    ($$idem_reset_policy('inbox', '')$$, '22023', 'handler must not be empty'),
    ($$idem_set_policy('pg_class', mode => 'lease')$$, '42809', '"pg_class" is not a dedup table'),
    ($$idem_set_policy('inbox_g0', mode => 'lease')$$, '42809', '"inbox_g0" is not a dedup table'),
    ($$idem_reset_policy('pg_class', 'narrow')$$, '42809', '"pg_class" is not a dedup table'),
    ($$idem_set_policy(4294967::regclass, mode => 'lease')$$, '42P01', 'relation with OID 4294967 does not exist')
) r (call, code, message);
SELECT set_eq('TABLE idem_policy', 'TABLE before', 'and nothing is written');
SELECT lives_ok($$SELECT idem_set_policy('inbox', 'wide', '20 min', '40 days', backoff_base => '2 min')$$,
    'as long as the table''s is allowed');
SELECT lives_ok($$SELECT idem_set_policy('inbox', hot_window => '20 min', cold_window => '40 days')$$,
    'and what was set before');
SELECT lives_ok($$SELECT idem_set_policy('inbox', repeat('x', 255), backoff_base => '0', backoff_cap => '0')$$,
    'a name of 255 bytes, and no pause');

-- Whose

CREATE ROLE regress_idem_owner;
CREATE ROLE regress_idem_app;
CREATE SCHEMA app AUTHORIZATION regress_idem_owner;
GRANT USAGE ON SCHEMA app TO PUBLIC;
SET LOCAL ROLE regress_idem_owner;
SELECT idem_create_table('app.owned') \g /dev/null
GRANT ALL ON app.owned TO regress_idem_app;
SELECT lives_ok($$SELECT idem_set_policy('app.owned', 'book', mode => 'lease')$$,
    'the owner, without privileges on the registry');
SELECT is(pg_temp.policy('app.owned', 'book'), 'lease, 00:15:00, 30 days, 365 days, 10, 00:00:10, 01:00:00, reject, t',
    'and reads it');
SET LOCAL ROLE regress_idem_app;
SELECT throws_ok($$SELECT idem_set_policy('app.owned', 'book', mode => 'transaction')$$, '42501',
    'must be owner of table owned', 'nobody else');
SELECT throws_ok($$SELECT idem_reset_policy('app.owned', 'book')$$, '42501', 'must be owner of table owned', 'neither');
SELECT throws_ok($$DELETE FROM idem_handler_policy$$, '42501', 'permission denied for table idem_handler_policy',
    'nor by hand');
SELECT is(pg_temp.policy('app.owned', 'book'), 'lease, 00:15:00, 30 days, 365 days, 10, 00:00:10, 01:00:00, reject, t',
    'everybody may read it');
SELECT is(outcome, 'acquired', 'and is under it') FROM idem_acquire('app.owned', 'book', 'e');
SELECT is(outcome, 'backoff', 'as a lease') FROM idem_release('app.owned', 'book', 'e', error => 'no', attempt => 1);
SELECT is(idem_reset_policy('app.owned', 'book'), true, 'the owner resets it')
FROM set_config('role', 'regress_idem_owner', true);
SELECT idem_set_policy('app.owned', 'book', mode => 'lease') \g /dev/null
RESET ROLE;

-- An error that the policy does not let pass is caught as any other

SELECT idem_set_policy('inbox', 'open', on_unavailable => 'allow') \g /dev/null
SELECT throws_ok($$SELECT idem_acquire('inbox', 'open', 'e', hot_window => '1 day')$$, '22023',
    'hot_window is longer than that of dedup table "inbox"', 'a bad argument is nobody else''s fault');
SAVEPOINT a;
SELECT throws_ok($$SELECT idem_acquire('inbox', 'open', 'e', hot_window => '1 day')$$, '22023', NULL, 'in a savepoint');
ROLLBACK TO SAVEPOINT a;
SELECT is(outcome, 'acquired', 'the transaction goes on') FROM idem_accept('inbox', 'open', 'e');

-- With the table

DROP TABLE app.owned;
SELECT is_empty($$SELECT FROM idem_policy WHERE dedup::text NOT IN ('inbox', 'outbox')$$,
    'a dropped table has no policy');
SELECT idem_create_table('app.owned') \g /dev/null
SELECT is_empty($$SELECT FROM idem_policy WHERE dedup = 'app.owned'::regclass AND handler IS NOT NULL$$,
    'nor does it come back with its name');
SELECT is_empty($$SELECT FROM idem_handler_policy h WHERE NOT EXISTS (SELECT FROM pg_class WHERE oid = h.dedup)$$,
    'what it had is forgotten');

-- Read-only

SET TRANSACTION READ ONLY;
SELECT throws_ok($$SELECT idem_set_policy('pg_class', mode => 'lease')$$, '25006',
    'cannot execute idem_set_policy() in a read-only transaction', 'not in a read-only transaction');
SELECT throws_ok($$SELECT idem_reset_policy('pg_class', 'book')$$, '25006',
    'cannot execute idem_reset_policy() in a read-only transaction', 'neither');

SELECT * FROM finish();
ROLLBACK;
