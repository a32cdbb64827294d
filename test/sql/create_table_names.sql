-- idem_create_table: which names a dedup table may have.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SELECT plan(31);

-- The name is written as in CREATE TABLE, and every function takes it so.
CREATE SCHEMA app;
CREATE SCHEMA "The App.2";

CREATE TEMP TABLE name (written text, schema name, relation name);
INSERT INTO name VALUES
    ('simple',                              'public',    'simple'),
    ('FoldedCase',                          'public',    'foldedcase'),
    ('app.qualified',                       'app',       'qualified'),
    ('"The App.2".inside',                  'The App.2', 'inside'),
    ('"The App.2"."With.Dot"',              'The App.2', 'With.Dot'),
    ('"MixedCase"',                         'public',    'MixedCase'),
    ('"double "" quote"',                   'public',    'double " quote'),
    ('"it''s; DROP TABLE name; --"',        'public',    'it''s; DROP TABLE name; --'),
    ('"back\slash %s %d $1"',               'public',    'back\slash %s %d $1'),
    ('"select"',                            'public',    'select'),
    ('"1"',                                 'public',    '1'),
    ('" "',                                 'public',    ' '),
    ('"支付é😀"',                           'public',    '支付é😀'),
    ('  app . spaced  ',                    'app',       'spaced');

CREATE TEMP TABLE made AS
    SELECT *, idem_create_table(written, generations => 2) AS dedup FROM name;

SELECT is(dedup, format('%I.%I', schema, relation)::regclass, 'is a name: ' || written) FROM made;

SELECT set_eq(
    $$SELECT dedup::text::regclass FROM idem_registry WHERE dedup IN (SELECT dedup FROM made)$$,
    $$SELECT dedup FROM made$$,
    'every one is registered, and what is shown is a name again');

SELECT set_eq(
    $$SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN (SELECT dedup FROM made)$$,
    $$SELECT format('%I.%I', schema, relation || '_g' || n)::regclass FROM made, generate_series(0, 1) n$$,
    'partitions carry its name, in its schema');

SELECT is(count(*) FILTER (WHERE acquired), 14::bigint, 'every one takes events')
FROM made, idem_accept(dedup, 'book', 'e1');
SELECT is(count(*) FILTER (WHERE outcome = 'duplicate'), 14::bigint, 'and remembers them')
FROM made, idem_accept(dedup, 'book', 'e1');

-- The first schema of search_path takes an unqualified name.
SET LOCAL search_path = app, public;
SELECT is(idem_create_table('simple')::text, 'simple', 'search_path decides where it is made');
SELECT is(count(*), 9::bigint, 'with all its partitions')
FROM pg_partition_tree('app.simple') JOIN pg_class ON oid = relid WHERE relnamespace = 'app'::regnamespace;
RESET search_path;

SELECT is(idem_create_table(quote_ident(current_database()) || '.app.by_database')::text, 'app.by_database',
    'the database may be named');

-- Length: partitions add at least three bytes to the name, which has at most 63.
SELECT lives_ok($$SELECT idem_create_table(repeat('a', 60))$$, '60 bytes, and _g7');
SELECT throws_ok($$SELECT idem_create_table(repeat('b', 61))$$, '42622',
    'name "' || repeat('b', 61) || '" is too long for a dedup table', '61 bytes are too many');
SELECT throws_ok($$SELECT idem_create_table(repeat('b', 62))$$, '42622',
    'name "' || repeat('b', 62) || '" is too long for a dedup table', '62 too');
SELECT throws_ok($$SELECT idem_create_table(repeat('b', 63))$$, '42622',
    'name "' || repeat('b', 63) || '" is too long for a dedup table', '63 too');
SELECT throws_ok($$SELECT idem_create_table(repeat('b', 1000))$$, '42622', NULL, '1000 too: it is not cut');
SELECT lives_ok($$SELECT idem_create_table(repeat('c', 59), generations => 64)$$, '59 bytes, and _g63');
SELECT throws_ok($$SELECT idem_create_table(repeat('b', 60), generations => 11)$$, '42622', NULL, '60 bytes, and _g10');
SELECT lives_ok($$SELECT idem_create_table('"' || repeat('é', 30) || '"')$$, '30 letters of two bytes');
SELECT throws_ok($$SELECT idem_create_table('"' || repeat('é', 31) || '"')$$, '42622',
    'name "' || repeat('é', 31) || '" is too long for a dedup table', '31 letters of two bytes');
SELECT is(count(*), 0::bigint, 'of what was refused nothing is there')
FROM pg_class WHERE relname LIKE 'bb%' OR relname LIKE repeat('é', 31) || '%';

SELECT * FROM finish();
ROLLBACK;
