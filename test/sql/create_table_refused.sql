-- idem_create_table: what it refuses; then nothing is made.
BEGIN;
SELECT plan(64);

CREATE TEMP TABLE before_all AS SELECT oid FROM pg_class;

-- Nulls

SELECT throws_ok($$SELECT idem_create_table(NULL)$$, '22004', 'table_name must not be null');
SELECT throws_ok($$SELECT idem_create_table('refused', hot_window => NULL)$$, '22004', 'hot_window must not be null');
SELECT throws_ok($$SELECT idem_create_table('refused', cold_window => NULL)$$, '22004', 'cold_window must not be null');
SELECT throws_ok($$SELECT idem_create_table('refused', mode => NULL)$$, '22004', 'mode must not be null');
SELECT throws_ok($$SELECT idem_create_table('refused', generations => NULL)$$, '22004', 'generations must not be null');
SELECT throws_ok($$SELECT idem_create_table('refused', unlogged => NULL)$$, '22004', 'unlogged must not be null');

-- Windows: fixed, positive spans of at most ten years; the hot one is the shorter.

SELECT throws_ok(format('SELECT idem_create_table(''refused'', %I => %L)', name, span), '22023', name || ' ' || fault,
                 format('%s %s', name, span))
FROM unnest(ARRAY['hot_window', 'cold_window']) name,
     (VALUES ('1 month',                            'has no fixed length'),
             ('1 year',                             'has no fixed length'),
             ('-1 month',                           'has no fixed length'),
             ('1 month -30 days',                   'has no fixed length'),
             ('0',                                  'must be positive'),
             ('-1 microsecond',                     'must be positive'),
             ('-1 day',                             'must be positive'),
             ('1 day -24 hours',                    'must be positive'),
             ('-1 day 23:59:59',                    'must be positive'),
             ('-2147483648 days',                   'must be positive'),
             ('3660 days 00:00:00.000001',          'is too long'),
             ('3661 days',                          'is too long'),
             ('-1 day 100000 hours',                'is too long'),
             ('2147483647 days',                    'is too long')) AS bad (span, fault);

SELECT throws_ok($$SELECT idem_create_table('refused', '1 hour', '1 hour')$$, '22023',
    'hot_window must be shorter than cold_window', 'equal windows');
SELECT throws_ok($$SELECT idem_create_table('refused', '24 hours', '1 day')$$, '22023',
    'hot_window must be shorter than cold_window', 'equal windows in other words');
SELECT throws_ok($$SELECT idem_create_table('refused', '31 days')$$, '22023',
    'hot_window must be shorter than cold_window', 'a hot window longer than the cold one');

-- Mode and generations

SELECT throws_ok(format('SELECT idem_create_table(''refused'', mode => %L)', mode), '22023',
    format('invalid mode "%s"', mode))
FROM unnest(ARRAY['', 'Lease', 'leases', 'lease ', 'transaction,lease']) mode;
SELECT throws_ok(format('SELECT idem_create_table(''refused'', generations => %s)', generations), '22023',
    format('generations must be 2 to 64, not %s', generations))
FROM unnest(ARRAY[1, 65, 0, -1, 2147483647]) generations;

-- Names

SELECT throws_ok(format('SELECT idem_create_table(%L)', name), '42602', 'invalid name syntax',
    format('not a name: "%s"', name))
FROM unnest(ARRAY['', 'two words', '"unclosed', 'dot.', '.dot']) name;
SELECT throws_ok($$SELECT idem_create_table('nowhere.refused')$$, '3F000', 'schema "nowhere" does not exist');
SELECT throws_ok($$SELECT idem_create_table('a.b.c.refused')$$, '42601', NULL, 'too many dots');
SELECT throws_ok($$SELECT idem_create_table('elsewhere.public.refused')$$, '0A000',
    'cross-database references are not implemented: "elsewhere.public.refused"', 'another database');
SELECT throws_ok($$SELECT idem_create_table('pg_temp.refused')$$, '42P16', 'a dedup table cannot be temporary');
SET LOCAL search_path = pg_temp, public;
SELECT throws_ok($$SELECT idem_create_table('refused')$$, '42P16', 'a dedup table cannot be temporary',
    'by search_path neither');
RESET search_path;
SELECT throws_ok($$SELECT idem_create_table('pg_catalog.refused')$$, '42501', NULL, 'a system catalog');

-- Names that are taken

CREATE TABLE taken ();
CREATE TABLE "child-taken_g5" ();
SELECT throws_ok($$SELECT idem_create_table('taken')$$, '42P07', 'relation "taken" already exists');
SELECT throws_ok($$SELECT idem_create_table('"child-taken"')$$, '42P07', 'relation "child-taken_g5" already exists');
DROP TABLE taken, "child-taken_g5";
SELECT idem_create_table('twice', generations => 2) \g /dev/null
SELECT throws_ok($$SELECT idem_create_table('twice', generations => 3)$$, '42P07', 'relation "twice" already exists',
    'a dedup table is not made anew');
SELECT is(count(*), 2::bigint, 'and stays as it is') FROM pg_inherits WHERE inhparent = 'twice'::regclass;
DROP TABLE twice;

SELECT is_empty(
    $$SELECT oid::regclass FROM pg_class WHERE oid NOT IN (SELECT oid FROM before_all)
          AND relnamespace <> pg_my_temp_schema()$$,
    'no relation is left');
SELECT is_empty(
    $$SELECT * FROM idem_registry WHERE dedup IN (SELECT oid FROM pg_class EXCEPT SELECT oid FROM before_all)$$,
    'nothing is registered');

SELECT * FROM finish();
ROLLBACK;
