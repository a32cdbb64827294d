-- In a read-only transaction whatever writes is refused, also where it would have had nothing to write.
CREATE SCHEMA read_only;
SET search_path = read_only, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    CREATE FUNCTION action(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
    PERFORM idem_create_table('unregistered');
    PERFORM idem_accept('inbox', 'book', 'done');
    DELETE FROM idem_control WHERE dedup = 'unregistered'::regclass;
    DELETE FROM idem_registry WHERE dedup = 'unregistered'::regclass;
END $$;

BEGIN;
SELECT plan(23);

-- Each statement is undone, the setting with it.
SELECT throws_ok('SET LOCAL transaction_read_only = on; ' || statement, '25006',
    format('cannot execute %s in a read-only transaction', refused), statement)
FROM (VALUES (1, 'SELECT idem_acquire(''inbox'', ''book'', ''new'')',                'idem_acquire()'),
             (2, 'SELECT idem_acquire(''inbox'', ''book'', ''done'')',               'idem_acquire()'),
             (3, 'SELECT idem_accept(''inbox'', ''book'', ''new'')',                 'idem_accept()'),
             (4, 'SELECT idem_commit(''inbox'', ''book'', ''done'', attempt => 1)',  'idem_commit()'),
             (5, 'SELECT idem_release(''inbox'', ''book'', ''new'')',                'idem_release()'),
             (6, 'SELECT idem_release(''inbox'', ''book'', ''new'', error => ''no'')', 'idem_release()'),
             (7, 'SELECT idem_extend(''inbox'', ''book'', ''new'')',                 'idem_extend()'),
             (8, 'SELECT idem_create_table(''refused'')',                            'CREATE TABLE'),
             (9, 'SELECT idem_attach_table(''unregistered'')',                       'idem_attach_table()'),
             (10, 'SELECT idem_set_policy(''inbox'')',                               'idem_set_policy()'),
             (11, 'SELECT idem_reset_policy(''inbox'', ''book'')',                   'idem_reset_policy()'),
             (12, 'SELECT idem_receive(''inbox'', ''book'', ''done'')',              'idem_receive()'),
             (13, 'SELECT idem_due(''inbox'')',                                      'idem_due()'),
             (14, 'SELECT idem_requeue(''inbox'', ''book'', ''done'')',              'idem_requeue()'),
             (15, 'SELECT idem_resolve(''inbox'', ''book'', ''done'', note => ''n'')', 'idem_resolve()'),
             (16, 'SELECT idem_once(''inbox'', ''book'', ''done'', ''action(jsonb)'')', 'idem_acquire()'),
             (17, 'SELECT idem_acquire_many(''inbox'', ''book'', ''{done}'')',       'idem_acquire()'),
             (18, 'SELECT idem_commit_many(''inbox'', ''book'', ''{done}'', attempts => ''{1}'')', 'idem_commit()'),
             (19, 'SELECT idem_release_many(''inbox'', ''book'', ''{done}'')',       'idem_release()'))
         AS call (n, statement, refused)
ORDER BY n;

SELECT lives_ok('SET LOCAL transaction_read_only = on; SELECT idem_dead_letters(''inbox'')', 'dead letters may be read');
SELECT is(count(*), 1::bigint, 'nothing was written') FROM inbox;
SELECT is_empty($$SELECT * FROM idem_registry WHERE dedup = 'unregistered'::regclass$$, 'nothing was registered');
SELECT hasnt_table('refused');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA read_only CASCADE;
