-- Privileges: functions run as their caller, who needs them on the parent only; the registry is written by nobody but
-- idem.
BEGIN;
SELECT plan(161);

CREATE ROLE regress_idem_owner;
CREATE ROLE regress_idem_app;
CREATE ROLE regress_idem_group;
CREATE ROLE regress_idem_none;
CREATE SCHEMA app AUTHORIZATION regress_idem_owner;
GRANT USAGE ON SCHEMA app TO PUBLIC;

-- Whoever may create a table may create a dedup table, and owns it

SET LOCAL ROLE regress_idem_owner;
SELECT is(idem_create_table('app.outbox', mode => 'lease')::text, 'app.outbox', 'an ordinary role makes a dedup table');
SELECT is_empty($$SELECT relid FROM pg_partition_tree('app.outbox') JOIN pg_class c ON c.oid = relid
                  WHERE c.relowner <> 'regress_idem_owner'::regrole$$, 'and owns all of it');
SELECT is(outcome, 'acquired', 'the owner acquires') FROM idem_acquire('app.outbox', 'send', 'owner');
SELECT lives_ok($$SELECT idem_commit('app.outbox', 'send', 'owner')$$, 'and settles');
SELECT is(state, 'done', 'and looks') FROM idem_lookup('app.outbox', 'send', 'owner');
SELECT idem_create_table('app.second') \g /dev/null
RESET ROLE;

SET LOCAL ROLE regress_idem_none;
SELECT throws_ok($$SELECT idem_create_table('app.refused')$$, '42501', 'permission denied for schema app',
    'without CREATE on the schema, no');
SELECT is_empty($$SELECT FROM pg_class WHERE relname LIKE 'refused%'$$, 'nothing is made');

-- Each combination of privileges, and each function

RESET ROLE;
CREATE FUNCTION pg_temp.call(function text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
BEGIN
    EXECUTE format('SELECT %s(''app.outbox'', ''send'' %s)', function,
                   CASE WHEN function IN ('idem_due', 'idem_dead_letters') THEN ''
                        WHEN function LIKE '%_many' THEN ', ''{e}'''
                        ELSE ', ''e''' END ||
                   CASE function WHEN 'idem_commit' THEN ', attempt => 1' WHEN 'idem_extend' THEN ', attempt => 1'
                                 WHEN 'idem_release' THEN ', error => ''no''' WHEN 'idem_resolve' THEN ', note => ''n'''
                                 WHEN 'idem_once' THEN ', action => ''pg_temp.action(jsonb)'''
                                 WHEN 'idem_commit_many' THEN ', attempts => ''{1}''' ELSE '' END);
    RAISE EXCEPTION SQLSTATE 'XX999';
EXCEPTION
    WHEN SQLSTATE 'XX999' THEN RETURN 'allowed';
    WHEN SQLSTATE 'ID002' THEN RETURN 'allowed';
    WHEN insufficient_privilege THEN
        GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
        RETURN replace(message, 'permission denied for table outbox', 'denied');
END $$;
CREATE FUNCTION pg_temp.action(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
CREATE TEMP TABLE expected (granted text, writes text, reads text, does_both text);
INSERT INTO expected VALUES
    ('',                                      'denied',  'denied',  'denied'),
    ('SELECT',                                'denied',  'allowed', 'denied'),
    ('INSERT',                                'denied',  'denied',  'denied'),
    ('UPDATE',                                'denied',  'denied',  'denied'),
    ('SELECT, INSERT, DELETE, TRUNCATE',      'denied',  'allowed', 'denied'),
    ('SELECT, UPDATE, DELETE, REFERENCES',    'denied',  'allowed', 'denied'),
    ('INSERT, UPDATE',                        'allowed', 'denied',  'denied'),
    ('SELECT, INSERT, UPDATE',                'allowed', 'allowed', 'allowed'),
    ('INSERT (key, handler), UPDATE (state)', 'denied',  'denied',  'denied');
CREATE FUNCTION pg_temp.call_with(granted text, function text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    IF granted <> '' THEN EXECUTE format('GRANT %s ON app.outbox TO regress_idem_app', granted); END IF;
    SET LOCAL ROLE regress_idem_app;
    answer := pg_temp.call(function);
    RESET ROLE;
    REVOKE ALL ON app.outbox FROM regress_idem_app;
    REVOKE ALL (key, handler, state) ON app.outbox FROM regress_idem_app;
    RETURN answer;
END $$;

SELECT is(pg_temp.call_with(granted, function),
    CASE WHEN function IN ('idem_lookup', 'idem_dead_letters') THEN reads WHEN function IN ('idem_due', 'idem_once') THEN does_both
         ELSE writes END,
    format('%s with %s', function, coalesce(nullif(granted, ''), 'nothing')))
FROM expected,
     unnest(ARRAY['idem_acquire', 'idem_accept', 'idem_commit', 'idem_release', 'idem_extend', 'idem_lookup', 'idem_receive',
                  'idem_once', 'idem_requeue', 'idem_resolve', 'idem_acquire_many', 'idem_commit_many',
                  'idem_release_many', 'idem_due', 'idem_dead_letters']) function
ORDER BY granted, function;
SELECT is(count(*), 1::bigint, 'where it was refused nothing was written') FROM app.outbox;

-- On the parent only: nothing is granted on its partitions, or on the registry

GRANT INSERT, UPDATE ON app.outbox TO regress_idem_app;
SET LOCAL ROLE regress_idem_app;
SELECT is(outcome, 'acquired', 'GRANT INSERT, UPDATE on the parent is enough to acquire')
FROM idem_acquire('app.outbox', 'send', 'new');
SELECT lives_ok($$SELECT idem_extend('app.outbox', 'send', 'new', attempt => 1)$$, 'to extend');
SELECT lives_ok($$SELECT idem_commit('app.outbox', 'send', 'new', result => '{"message": 1}', attempt => 1)$$,
    'to commit');
SELECT is(result, '{"message": 1}', 'to be told the stored result') FROM idem_acquire('app.outbox', 'send', 'new');
SELECT throws_ok($$SELECT FROM app.outbox_g0$$, '42501', 'permission denied for table outbox_g0',
    'and for nothing else: partitions');
SELECT throws_ok($$SELECT FROM app.outbox$$, '42501', 'permission denied for table outbox', 'the table itself');
SELECT throws_ok($$SELECT last_error FROM idem_purge_state$$, '42501', 'permission denied for table idem_purge_state',
    'errors of passes, which may quote a row');
SELECT lives_ok($$SELECT * FROM idem_registry, idem_control$$, 'the registry may be read');
SELECT throws_ok($$UPDATE idem_registry SET mode = 'transaction'$$, '42501',
    'permission denied for table idem_registry', 'and not written');
SELECT throws_ok($$DELETE FROM idem_control$$, '42501', 'permission denied for table idem_control',
    'nor the ring''s position');
RESET ROLE;

-- By membership

GRANT INSERT, UPDATE, SELECT ON app.second TO regress_idem_group;
GRANT regress_idem_group TO regress_idem_none;
SET LOCAL ROLE regress_idem_none;
SELECT is(outcome, 'acquired', 'a member of a role has its privileges') FROM idem_accept('app.second', 'book', 'e');
RESET ROLE;

-- A function of the owner's may be SECURITY DEFINER

CREATE FUNCTION app.receive(event text) RETURNS idem_outcome LANGUAGE sql SECURITY DEFINER
    AS $$SELECT outcome FROM idem_accept('app.outbox', 'send', event)$$;
ALTER FUNCTION app.receive(text) OWNER TO regress_idem_owner;
SET LOCAL ROLE regress_idem_none;
SELECT throws_ok($$SELECT idem_accept('app.outbox', 'send', 'definer')$$, '42501', 'permission denied for table outbox',
    'directly: refused');
SELECT is(app.receive('definer'), 'acquired', 'through the owner''s function: allowed');
RESET ROLE;

-- The owner's own functions

SET LOCAL ROLE regress_idem_app;
SELECT throws_ok($$SELECT idem_attach_table('app.outbox')$$, '42501', 'must be owner of table outbox',
    'only the owner attaches');
RESET ROLE;
GRANT ALL ON app.outbox TO regress_idem_app;
SET LOCAL ROLE regress_idem_app;
SELECT throws_ok($$SELECT idem_attach_table('app.outbox')$$, '42501', 'must be owner of table outbox',
    'no privilege does instead');
RESET ROLE;
DELETE FROM idem_control WHERE dedup = 'app.outbox'::regclass;
DELETE FROM idem_registry WHERE dedup = 'app.outbox'::regclass;
SET LOCAL ROLE regress_idem_owner;
SELECT lives_ok($$SELECT idem_attach_table('app.outbox', mode => 'lease')$$,
    'the owner attaches, without privileges on the registry');
SELECT is(outcome, 'duplicate', 'it works again') FROM idem_acquire('app.outbox', 'send', 'new');
RESET ROLE;

-- The owner may lose them, too

REVOKE INSERT ON app.outbox FROM regress_idem_owner;
SET LOCAL ROLE regress_idem_owner;
SELECT throws_ok($$SELECT idem_acquire('app.outbox', 'send', 'revoked')$$, '42501',
    'permission denied for table outbox', 'the owner who revoked them from itself');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
