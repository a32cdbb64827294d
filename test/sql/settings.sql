-- The settings of the background worker are known in every session that has loaded the library, and only the server's
-- configuration changes them.
BEGIN;
SELECT plan(9);

SELECT idem_key('load', 'the library') \g /dev/null

SELECT results_eq(
    $$SELECT name COLLATE "default", vartype, boot_val, unit, min_val, max_val, context FROM pg_settings
      WHERE name IN ('idem.clock_patience', 'idem.databases', 'idem.purge', 'idem.purge_lock_timeout', 'idem.purge_naptime',
                     'idem.purge_table_timeout', 'idem.verify_purge')
      ORDER BY name$$,
    $$VALUES ('idem.clock_patience',      'integer', '3600', 's', '0', '2592000',     'user'),
             ('idem.databases',          'string',  '',    NULL, NULL, NULL,         'sighup'),
             ('idem.purge',              'bool',    'on',  NULL, NULL, NULL,         'sighup'),
             ('idem.purge_lock_timeout', 'integer', '500', 'ms', '1',  '2147483647', 'sighup'),
             ('idem.purge_naptime',      'integer', '60',  's',  '1',  '86400',      'sighup'),
             ('idem.purge_table_timeout', 'integer', '3600', 's', '0', '604800',      'sighup'),
             ('idem.verify_purge',       'bool',    'on',  NULL, NULL, NULL,         'sighup')$$,
    'defaults, units and limits');

SELECT is_empty(
    $$SELECT name FROM pg_settings WHERE name LIKE 'idem.%' AND (short_desc = '' OR category <> 'Customized Options')$$,
    'every setting is described');

SELECT throws_ok('SET idem.databases = shop', '55P02', 'parameter "idem.databases" cannot be changed now');
SELECT throws_ok('SET idem.purge = off', '55P02', 'parameter "idem.purge" cannot be changed now');
SELECT throws_ok('SET idem.purge_lock_timeout = 1', '55P02', 'parameter "idem.purge_lock_timeout" cannot be changed now');
SELECT throws_ok('SET idem.purge_naptime = 1', '55P02', 'parameter "idem.purge_naptime" cannot be changed now');
SELECT throws_ok('SET idem.purge_table_timeout = 1', '55P02', 'parameter "idem.purge_table_timeout" cannot be changed now');
SELECT throws_ok('SET idem.verify_purge = off', '55P02', 'parameter "idem.verify_purge" cannot be changed now');
SELECT throws_ok('SET idem.purge_interval = 1', '42602', 'invalid configuration parameter name "idem.purge_interval"',
    'a misspelled setting is refused');

SELECT * FROM finish();
ROLLBACK;
