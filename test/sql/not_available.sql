-- When the store is not available: `reject` raises, `allow` lets the work be done unprotected; nothing else is let
-- through. What takes more than one session, or a disk, is in test/t/140_store_not_available.pl.
BEGIN;
SELECT plan(72);
SET LOCAL client_min_messages = error;

SELECT idem_create_table('inbox', generations => 3) \g /dev/null
SELECT idem_create_table('outbox', mode => 'lease', generations => 3) \g /dev/null
SELECT idem_create_table('unregistered') \g /dev/null
SELECT idem_set_policy(dedup, 'lenient', on_unavailable => 'allow')
FROM unnest('{inbox,outbox,unregistered}'::regclass[]) AS dedup \g /dev/null
CREATE TABLE not_dedup ();
CREATE TABLE ledger (event_id text);
CREATE FUNCTION book(payload jsonb) RETURNS jsonb LANGUAGE sql AS
    $$INSERT INTO ledger VALUES (payload ->> 'event_id') RETURNING to_jsonb(event_id)$$;
CREATE FUNCTION pg_temp.seen(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT payload$$;
CREATE FUNCTION pg_temp.fail(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION USING errcode = payload ->> 'sqlstate'; END$$;

-- What a statement about an event answers: its outcomes, or the SQLSTATE that it raises.
CREATE FUNCTION pg_temp.heard(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE 'SELECT string_agg(CASE WHEN acquired THEN outcome || ''!'' ELSE outcome::text END, '' '') FROM ' || call
    INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- The same of each function that claims.
CREATE FUNCTION pg_temp.all_heard(handler text, dedup regclass DEFAULT 'inbox', event_id text DEFAULT 'e')
RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(pg_temp.heard(format(call, dedup, handler, event_id)), ', ' ORDER BY n)
    FROM unnest('{"idem_acquire(%L, %L, %L)",
                  "idem_accept(%L, %L, %L || ''2'')",
                  "idem_once(%L, %L, %L || ''3'', ''pg_temp.seen(jsonb)'')",
                  "idem_acquire_many(%L, %L, ARRAY[%L, ''f'', ''f''])"}'::text[]) WITH ORDINALITY AS c (call, n)
$$;

CREATE TEMP TABLE all_bypassed AS SELECT 'bypassed!, bypassed!, bypassed!, bypassed! bypassed! duplicate' AS heard;

-- What is not available

SELECT is(pg_temp.all_heard(handler), 'acquired!, acquired!, acquired!, busy acquired! duplicate',
    handler || ', available: claims as ever')
FROM unnest('{strict,lenient}'::text[]) AS handler;
SELECT is(count(*), 8::bigint, 'which are remembered') FROM inbox;
DELETE FROM inbox;

CREATE FUNCTION pg_temp.broken(how text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    statement text;
    rejected text;
    allowed text;
    sqlstate_expected text;
BEGIN
    SELECT f.statement, f.sqlstate FROM fault f WHERE f.fault = how INTO statement, sqlstate_expected;
    BEGIN
        EXECUTE statement;
        rejected := pg_temp.all_heard('strict');
        allowed := pg_temp.all_heard('lenient');
        RAISE EXCEPTION USING errcode = 'XX999';
    EXCEPTION WHEN SQLSTATE 'XX999' THEN
        NULL;
    END;
    RETURN NEXT is(rejected, concat_ws(', ', sqlstate_expected, sqlstate_expected, sqlstate_expected,
                                       sqlstate_expected), how || ': rejected');
    RETURN NEXT is(allowed, (SELECT heard FROM all_bypassed), how || ': allowed');
END $$;
CREATE TEMP TABLE fault (fault text, statement text, sqlstate text);
INSERT INTO fault VALUES
    ('read-only transaction', 'SET LOCAL transaction_read_only = on', '25006'),
    ('current partition dropped', 'DROP TABLE inbox_g0', '42809'),
    ('another partition dropped', 'DROP TABLE inbox_g2', '42809'),
    ('partition detached', 'ALTER TABLE inbox DETACH PARTITION inbox_g1', '42809'),
    ('primary key dropped', 'ALTER TABLE inbox_g0 DROP CONSTRAINT inbox_g0_pkey', '42809'),
    ('not OF idem_event any more', 'ALTER TABLE inbox NOT OF', '42809'),
    ('row-level security', 'ALTER TABLE inbox_g0 ENABLE ROW LEVEL SECURITY', '42809'),
    ('position of the ring lost', 'DELETE FROM idem_control WHERE dedup = ''inbox''::regclass', '42809'),
    ('more slots than there are', 'UPDATE idem_control SET slots = 4 WHERE dedup = ''inbox''::regclass', '42809');
-- A registry that idem did not write itself is not noticed by a session that has read it.
UPDATE fault SET statement = statement || '; COMMENT ON TABLE inbox IS ''changed''' WHERE statement LIKE '%idem_control%';
SELECT pg_temp.broken(fault) FROM fault;

-- Where a row has to be changed and may not be
SELECT idem_release('inbox', handler, 'failed', error => 'no', retry_after => '0')
FROM unnest('{strict,lenient}'::text[]) AS handler \g /dev/null
SAVEPOINT published;
ALTER TABLE inbox_g0 REPLICA IDENTITY NOTHING;
CREATE PUBLICATION inbox_publication FOR TABLE inbox_g0;
SELECT is(pg_temp.heard($$idem_acquire('inbox', 'strict', 'failed')$$), '55000', 'no replica identity: rejected');
SELECT is(pg_temp.heard($$idem_acquire('inbox', 'lenient', 'failed')$$), 'bypassed!', 'no replica identity: allowed');
SELECT is(pg_temp.heard($$idem_acquire('inbox', 'lenient', 'new')$$), 'acquired!', 'no replica identity: not needed');
ROLLBACK TO SAVEPOINT published;

-- What is no lack of a store, whatever the policy says

SELECT is(pg_temp.heard(format('idem_%s(''inbox'', %s)', function, arguments)), sqlstate,
    format('raised: %s(%s)', function, arguments))
FROM (VALUES ('acquire', 'NULL, ''e''', '22004'),
             ('acquire', '''lenient'', NULL', '22004'),
             ('acquire', '''lenient'', ''''', '22023'),
             ('acquire', '''lenient'', ''e'', hot_window => ''16 minutes''', '22023'),
             ('acquire_many', '''lenient'', ''{e}'', hot_window => ''16 minutes''', '22023'),
             ('acquire', '''lenient'', ''e'', fingerprint => ''x''', '22023'),
             ('once', '''lenient'', ''e'', ''pg_sleep(float8)''', '22023'),
             ('release', '''lenient'', ''e'', attempt => 1', 'ID002')) AS bad (function, arguments, sqlstate);
SAVEPOINT read_only;
SET LOCAL transaction_read_only = on;
SELECT is(pg_temp.heard($$idem_acquire('inbox', 'lenient', 'e', hot_window => '16 minutes')$$), '22023',
    'raised where there is no store, too: bad argument');
SELECT is(pg_temp.heard($$idem_acquire_many('inbox', 'lenient', '{e,f}', hot_window => '16 minutes')$$), '22023',
    'for many events, too');
SELECT is(pg_temp.heard(call), '25006', 'raised, as nothing would be done: ' || call)
FROM unnest(ARRAY[$$idem_receive('inbox', 'lenient', 'e')$$, $$idem_requeue('inbox', 'lenient', 'failed')$$,
                  $$idem_resolve('inbox', 'lenient', 'failed', note => 'n')$$, $$idem_release('inbox', 'lenient', 'x')$$])
     AS call;
SELECT throws_ok($$SELECT idem_due('inbox', 'lenient')$$, '25006', NULL, 'raised, as there is nothing to do: idem_due');
ROLLBACK TO SAVEPOINT read_only;

SELECT is(pg_temp.all_heard('lenient', 'not_dedup'), '42809, 42809, 42809, 42809', 'raised: not a dedup table');
DELETE FROM idem_registry WHERE dedup = 'unregistered'::regclass;
SELECT is(pg_temp.all_heard('lenient', 'unregistered'), '42809, 42809, 42809, 42809', 'raised: not registered');
CREATE ROLE regress_idem_none;
SET LOCAL ROLE regress_idem_none;
SELECT throws_ok($$SELECT idem_acquire('inbox', 'lenient', 'e')$$, '42501', NULL, 'raised: no privilege');
RESET ROLE;
SAVEPOINT constrained;
ALTER TABLE inbox_g0 ADD CHECK (event_id <> 'unlucky' AND length(event_id) < 9);
SELECT is(pg_temp.all_heard('lenient', event_id => 'unlucky 1'), '23514, 23514, 23514, 23514',
    'raised: a constraint of the owner');

SAVEPOINT ruled;
CREATE FUNCTION secret_rule(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
ALTER TABLE inbox_g0 ADD CHECK (secret_rule(event_id));
SELECT is(outcome, 'bypassed', 'bypassed: a constraint that would run code of a user''s')
FROM idem_acquire('inbox', 'lenient', 'lucky');
ROLLBACK TO SAVEPOINT ruled;

-- Whoever catches such an error finds his own savepoint undone, and nothing else
INSERT INTO ledger VALUES ('before');
DO $$
BEGIN
    INSERT INTO ledger VALUES ('in the block');
    PERFORM idem_acquire('inbox', 'lenient', 'unlucky');
EXCEPTION WHEN check_violation THEN
    INSERT INTO ledger VALUES ('in the handler');
END $$;
SELECT results_eq('TABLE ledger', $$VALUES ('before'), ('in the handler')$$, 'raised by a claim: the block is undone');
ROLLBACK TO SAVEPOINT constrained;
DO $$
BEGIN
    INSERT INTO ledger VALUES ('in the block');
    PERFORM idem_once('inbox', 'strict', 'unlucky', 'pg_temp.fail(jsonb)', '{"sqlstate": "40001"}');
EXCEPTION WHEN serialization_failure THEN
    INSERT INTO ledger VALUES ('in the handler');
END $$;
SELECT results_eq('TABLE ledger', $$VALUES ('in the handler')$$, 'raised by an action: the block is undone');
SELECT is(idem_lookup('inbox', 'strict', 'unlucky'), NULL, 'and so is the claim');
DELETE FROM ledger;

-- The work beside a bypassed claim is done, and the claim settled

SAVEPOINT broken;
DROP TABLE inbox_g2, outbox_g2;
INSERT INTO ledger SELECT 'accepted' FROM idem_accept('inbox', 'lenient', 'accepted') WHERE acquired;
SELECT is(ROW(c.*)::text, '(t,bypassed,,,,,)', 'a bypassed claim') FROM idem_acquire('inbox', 'lenient', 'work') c;
SELECT is(ROW(c.*)::text, '(t,bypassed,,,,"""once""",)', 'by idem_once: with the action''s result')
FROM idem_once('inbox', 'lenient', 'once', 'book(jsonb)', '{"event_id": "once"}') c;
SELECT results_eq('TABLE ledger', $$VALUES ('accepted'), ('once')$$, 'business writes took effect');
SELECT throws_ok($$SELECT idem_once('inbox', 'lenient', 'x', 'pg_temp.fail(jsonb)', '{"sqlstate": "XX999"}')$$, 'XX999',
    NULL, 'an action''s error is raised, as there is nowhere to record it');
SELECT is(idem_commit('inbox', 'lenient', 'work', result => '1'), NULL, 'a bypassed claim is committed, and not remembered');
SELECT is(idem_extend('inbox', 'lenient', 'work'), NULL, 'extended, to no end');
SELECT is(ROW(c.*)::text, '(f,backoff,,,0,,)', 'given back')
FROM idem_release('inbox', 'lenient', 'work') c;
SELECT is(ROW(c.*)::text, '(f,backoff,,,10,,no)', 'failed')
FROM idem_release('inbox', 'lenient', 'work', error => 'no', retry_after => '10 s') c;
SELECT throws_ok($$SELECT idem_commit('inbox', 'lenient', 'another')$$, '42809', NULL, 'another claim is not settled');
SELECT throws_ok($$SELECT idem_commit('inbox', 'other', 'work')$$, '42809', NULL, 'nor that of another handler');
SELECT throws_ok($$SELECT idem_commit('outbox', 'lenient', 'work')$$, '42809', NULL, 'nor that in another table');
SELECT is(pg_temp.heard($$idem_acquire_many('inbox', 'lenient', '{m,n}')$$), 'bypassed! bypassed!', 'many bypassed');
SELECT is(idem_commit_many('inbox', 'lenient', '{m,n}'), NULL, 'many are committed');
SELECT is(pg_temp.heard($$idem_release_many('inbox', 'lenient', '{n,m}')$$), 'backoff backoff', 'and given back');
ROLLBACK TO SAVEPOINT broken;
SELECT throws_ok(format('SELECT idem_commit(''inbox'', ''lenient'', %L)', event_id), 'ID002', NULL,
    'the savepoint is rolled back: no claim on ' || event_id)
FROM unnest('{work,m}'::text[]) AS event_id;

-- Once the store is there again, what it says counts

CREATE FUNCTION pg_temp.bypass(dedup regclass, event_id text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s_g0 ENABLE ROW LEVEL SECURITY', dedup);
    IF pg_temp.heard(format('idem_acquire(%L, ''lenient'', %L)', dedup, event_id)) <> 'bypassed!' THEN
        RAISE EXCEPTION 'not bypassed';
    END IF;
    EXECUTE format('ALTER TABLE %s_g0 DISABLE ROW LEVEL SECURITY', dedup);
END $$;

SELECT pg_temp.bypass(dedup, 'again') FROM unnest('{inbox,outbox}'::regclass[]) AS dedup \g /dev/null
SELECT is(pg_temp.heard(format('idem_acquire(%L, ''lenient'', ''again'')', dedup)), 'acquired!', dedup || ': acquired')
FROM unnest('{inbox,outbox}'::regclass[]) AS dedup;
SELECT idem_commit(dedup, 'lenient', 'again', result => '1') FROM unnest('{inbox,outbox}'::regclass[]) AS dedup \g /dev/null
SELECT is(ROW(state, result)::text, '(done,1)', dedup || ': what was acquired after all is settled')
FROM unnest('{inbox,outbox}'::regclass[]) AS dedup, idem_lookup(dedup, 'lenient', 'again');

SELECT pg_temp.bypass('inbox', 'one of many') \g /dev/null
SELECT idem_acquire_many('inbox', 'lenient', '{one of many,other}') \g /dev/null
SELECT idem_commit_many('inbox', 'lenient', '{one of many,other}', results => '{1,2}') \g /dev/null
SELECT is(array_agg(result ORDER BY result), '{1,2}'::jsonb[], 'the same for many') FROM inbox
WHERE event_id IN ('one of many', 'other');

SELECT pg_temp.bypass('outbox', 'rolled back') \g /dev/null
SAVEPOINT claimed;
SELECT idem_acquire('outbox', 'lenient', 'rolled back') \g /dev/null
ROLLBACK TO SAVEPOINT claimed;
SELECT lives_ok($$SELECT idem_commit('outbox', 'lenient', 'rolled back')$$, 'its savepoint rolled back: bypassed again');
SELECT is(idem_lookup('outbox', 'lenient', 'rolled back'), NULL, 'which leaves nothing in the store');

SELECT pg_temp.bypass('inbox', 'mixed') \g /dev/null
SELECT idem_acquire('inbox', 'lenient', 'stored') \g /dev/null
SELECT is(idem_commit_many('inbox', 'lenient', '{mixed,stored}', results => '{1,2}'), NULL, 'nobody can say that all are remembered');
SELECT is(array_agg(ROW(event_id, result)::text), '{"(stored,2)"}', 'bypassed and stored claims are settled in one call')
FROM inbox WHERE event_id IN ('mixed', 'stored');

SELECT * FROM finish();
ROLLBACK;
