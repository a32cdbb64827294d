-- A dedup table is dropped like any other, and leaves nothing that hurts.
BEGIN;
SELECT plan(27);

-- What pg_dump takes along of registry and control, of the tables that are made here
CREATE TEMP TABLE made (dedup oid);
CREATE FUNCTION pg_temp.dumped() RETURNS TABLE (what text) LANGUAGE plpgsql AS $$
DECLARE
    member record;
BEGIN
    FOR member IN
        SELECT unnest(extconfig)::regclass AS relation, unnest(extcondition) AS condition
        FROM pg_extension WHERE extname = 'idem'
    LOOP
        RETURN QUERY EXECUTE format(
            'SELECT %L || '' of '' || dedup::text FROM (SELECT * FROM %s %s) r JOIN made USING (dedup)',
            member.relation, member.relation, member.condition);
    END LOOP;
END $$;

INSERT INTO made SELECT idem_create_table('kept');
SELECT is(outcome, 'acquired', 'an event of a table that is kept') FROM idem_accept('kept', 'book', 'e');
INSERT INTO made SELECT idem_create_table('dropped', generations => 3);
SELECT is(outcome, 'acquired', 'an event of one that is dropped') FROM idem_accept('dropped', 'book', 'e');
SELECT 'dropped'::regclass::oid AS old \gset
SELECT bag_eq('SELECT pg_temp.dumped()',
    $$VALUES ('idem_registry of kept'), ('idem_control of kept'), ('idem_generation of kept'),
             ('idem_registry of dropped'), ('idem_control of dropped'), ('idem_generation of dropped')$$,
    'pg_dump takes the registration of both along');

SELECT lives_ok('DROP TABLE dropped', 'it is dropped without CASCADE');
SELECT is_empty($$SELECT oid::regclass FROM pg_class WHERE relname LIKE 'dropped%'$$, 'with all its partitions');
SELECT throws_ok($$SELECT idem_accept('dropped', 'book', 'e')$$, '42P01', 'relation "dropped" does not exist',
    'its name is unknown');
SELECT throws_ok(format('SELECT %s(%s::oid, ''book'', ''e'')', function, :old), '42P01',
    format('relation with OID %s does not exist', :old),
    function || ' with its OID')
FROM unnest(ARRAY['idem_acquire', 'idem_accept', 'idem_commit', 'idem_release', 'idem_extend', 'idem_lookup']) function;
SELECT throws_ok(format('SELECT idem_attach_table(%s::oid)', :old), '42P01',
    format('relation with OID %s does not exist', :old), 'idem_attach_table with its OID');
SELECT bag_eq('SELECT pg_temp.dumped()',
    $$VALUES ('idem_registry of kept'), ('idem_control of kept'), ('idem_generation of kept')$$,
    'pg_dump takes nothing of it along');
SELECT is(outcome, 'duplicate', 'the other table goes on') FROM idem_accept('kept', 'book', 'e');

SELECT is(idem_create_table('dropped', mode => 'lease', generations => 2)::text, 'dropped',
    'another table of its name is made');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'which knows nothing of the old one''s events')
FROM idem_acquire('dropped', 'book', 'e');
SELECT is(state, 'processing', 'and has a policy of its own') FROM idem_lookup('dropped', 'book', 'e');
SELECT is(array_agg(dedup::oid), NULL, 'the old registration is gone')
FROM (SELECT dedup FROM idem_registry UNION ALL SELECT dedup FROM idem_control) r WHERE dedup = :old;
SELECT is(count(*), 1::bigint, 'the new one is there')
FROM idem_registry JOIN idem_control USING (dedup) WHERE dedup = 'dropped'::regclass;

-- With claims of the same transaction

SELECT idem_create_table('claimed') \g /dev/null
SELECT idem_acquire('claimed', 'book', 'e') \g /dev/null
SELECT idem_commit('claimed', 'book', 'e') \g /dev/null
SAVEPOINT a;
DROP TABLE claimed;
SELECT idem_create_table('claimed') \g /dev/null
SELECT is(attempt, 1, 'dropped and made anew, an event is new') FROM idem_acquire('claimed', 'book', 'e');
ROLLBACK TO SAVEPOINT a;
SELECT is(outcome, 'duplicate', 'the drop is rolled back: it remembers') FROM idem_acquire('claimed', 'book', 'e');
SELECT is(outcome, 'acquired', 'and takes events') FROM idem_accept('claimed', 'book', 'e2');
SAVEPOINT b;
SELECT idem_acquire('claimed', 'book', 'open') \g /dev/null
TRUNCATE claimed;
SELECT is(outcome, 'acquired', 'emptied by TRUNCATE, it remembers nothing') FROM idem_accept('claimed', 'book', 'e2');
ROLLBACK TO SAVEPOINT b;
SELECT is(outcome, 'duplicate', 'unless that is rolled back') FROM idem_accept('claimed', 'book', 'e2');

-- With its schema

CREATE SCHEMA app;
SELECT idem_create_table('app.inbox') \g /dev/null
SET LOCAL client_min_messages = warning;
SELECT lives_ok('DROP SCHEMA app CASCADE', 'it is dropped with its schema');
SELECT lives_ok($$CREATE SCHEMA app; SELECT idem_create_table('app.inbox')$$, 'and made anew');

SELECT * FROM finish();
ROLLBACK;
