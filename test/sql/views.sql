-- One dedup table is looked for in a view by WHERE dedup = 'inbox'::regclass, and each view's comment says so.
BEGIN;
SELECT plan(5);

SELECT idem_create_table('inbox');
SELECT idem_create_table('outbox', mode => 'lease');

CREATE TEMP VIEW views AS
SELECT c.oid, c.relname, a.attnum
FROM pg_depend d JOIN pg_class c ON c.oid = d.objid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'dedup'
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND c.relkind = 'v'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idem');

SELECT cmp_ok((SELECT count(*) FROM views), '>=', 6::bigint, 'there are views by dedup table');
SELECT is_empty($$SELECT relname FROM views
    WHERE col_description(oid, attnum) IS NULL OR col_description(oid, attnum) NOT LIKE '%WHERE dedup = ''inbox''::regclass%'$$,
    'each says how to look for one');
SELECT is_empty($$
    SELECT relname FROM views, query_to_xml(format(
        'SELECT 1 FROM %s WHERE dedup IS DISTINCT FROM ''inbox''::regclass AND dedup = ''inbox''::regclass', oid::regclass),
        true, false, '') found
    WHERE xpath_exists('//row', found)$$, 'in each of them that can be said');
SELECT results_eq($$SELECT dedup::text, mode FROM idem_tables WHERE dedup = 'inbox'::regclass$$,
    $$VALUES ('inbox', 'transaction')$$, 'it finds the one');
SELECT throws_ok($$SELECT FROM idem_tables WHERE dedup = 'inbox'$$, '22P02', 'invalid input syntax for type oid: "inbox"',
    'without the cast it is an error, never another table');

SELECT * FROM finish();
ROLLBACK;
