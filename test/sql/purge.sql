-- A pass of idem_purge: what is due and what is not, what it counts, what it leaves alone, and what an operator sees.
-- It commits, so all passes are over before pgTAP's transaction starts. The worker must not be at it, too.
CREATE SCHEMA purge;
SET search_path = purge, public;

SET client_min_messages = error;

-- When the ring turns: each (cold window) / (K - 2), and each cold window where K is 2; but not while nothing came.
CREATE TEMP TABLE span (k int, what text, current bigint);
CREATE PROCEDURE pass(k int, what text, age interval) LANGUAGE plpgsql AS $$
BEGIN
    UPDATE idem_generation SET opened_at = clock_timestamp() - age
    WHERE dedup = ('span_' || k)::regclass AND sealed_at IS NULL;
    COMMIT;
    CALL idem_purge(('span_' || k)::regclass);
    INSERT INTO span SELECT k, what, current_generation FROM idem_control WHERE dedup = ('span_' || k)::regclass;
    COMMIT;
END $$;
CREATE PROCEDURE spans(k int, span interval) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM idem_create_table('span_' || k, cold_window => '62 days', generations => k);
    CALL pass(k, '1. empty, due', span);
    PERFORM idem_accept(('span_' || k)::regclass, 'book', 'e');
    CALL pass(k, '2. a minute early', span - interval '1 minute');
    CALL pass(k, '3. due', span);
    CALL pass(k, '4. empty again, due', span);
    PERFORM idem_accept(('span_' || k)::regclass, 'book', 'f');
    CALL pass(k, '5. due again', span);
END $$;
CALL spans(2, '62 days');
CALL spans(3, '62 days');
CALL spans(4, '31 days');
CALL spans(8, '248 hours');
CALL spans(64, '24 hours');

-- With two slots the second turn finds no room, until the first generation has expired.
SELECT full_since IS NOT NULL AS was_full, turned FROM idem_purge_status WHERE dedup = 'span_2'::regclass \gset
UPDATE span_2 SET expires_at = now() WHERE slot = 0;
UPDATE idem_generation SET newest_expiry = now() WHERE dedup = 'span_2'::regclass AND generation = 0;
CALL pass(2, '6. room again', '62 days');
SELECT full_since IS NULL AS not_full FROM idem_purge_status WHERE dedup = 'span_2'::regclass \gset

-- All kinds of events in one generation: three are settled and expire soon, the others are not.
DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease', generations => 3);
    PERFORM idem_acquire('outbox', 'send', e, 'b', idem_fingerprint(e), owner => 'token ' || e,
                         payload => jsonb_build_object('text', repeat(md5(e), 500)))
    FROM unnest(ARRAY['runs', 'commits', 'fails', 'gives', 'extends', 'ran out', 'failed', 'given back', 'given up',
                      'dead', 'by hand', 'done 1', 'done 2', 'done 3']) e;
    PERFORM idem_commit('outbox', 'send', e, 'b', result => '1', attempt => 1, cold_window => '1 microsecond')
    FROM unnest(ARRAY['done 1', 'done 2', 'done 3']) e;
    PERFORM idem_release('outbox', 'send', 'failed', 'b', attempt => 1, error => repeat('why ', 5000), retry_after => '0');
    PERFORM idem_release('outbox', 'send', 'given back', 'b', attempt => 1, retry_after => '1 hour');
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'ran out';
    UPDATE outbox SET claimable_at = 'infinity', expires_at = now() + interval '1 day', state = 'dead'
    WHERE event_id = 'dead';
    UPDATE outbox SET claimable_at = now() - interval '1 year', expires_at = now() WHERE event_id = 'given up';
END $$;
CREATE TEMP TABLE outbox_before AS SELECT * FROM outbox;
SELECT max(expires_at) AS newest_expiry FROM outbox WHERE state = 'done' \gset
CALL idem_rotate('outbox');
CREATE TEMP TABLE sealed AS SELECT * FROM idem_generations WHERE dedup = 'outbox'::regclass AND generation = 0;
CALL idem_purge('outbox');
CREATE TEMP TABLE outbox_after AS SELECT * FROM outbox;
CREATE TEMP TABLE outbox_status AS SELECT * FROM idem_purge_status WHERE dedup = 'outbox'::regclass;
CALL idem_purge('outbox');
CREATE TEMP TABLE outbox_idle AS SELECT * FROM idem_purge_status WHERE dedup = 'outbox'::regclass;

-- A census that is wrong: by it, the live event in generation 0 has expired long ago.
SELECT idem_create_table('wrong', generations => 3) \g /dev/null
SELECT FROM idem_accept('wrong', 'book', 'lives');
CALL idem_rotate('wrong');
UPDATE idem_generation SET newest_expiry = now() - interval '1 day' WHERE dedup = 'wrong'::regclass AND generation = 0;
CALL idem_purge('wrong');

-- Tables of several owners, some of them broken. Only the caller's own are purged, and a broken one stops none.
CREATE ROLE regress_idem_one;
CREATE ROLE regress_idem_two;
CREATE SCHEMA "regress idem ""one" AUTHORIZATION regress_idem_one;
CREATE SCHEMA regress_idem_two AUTHORIZATION regress_idem_two;
SET ROLE regress_idem_one;
SET search_path = "regress idem ""one", public;
SELECT idem_create_table('a_broken', generations => 3), idem_create_table('"b In.box''s ""name"""', generations => 3),
       idem_create_table('c_broken', generations => 3), idem_create_table('select', generations => 3) \g /dev/null
SELECT FROM pg_class, idem_accept(oid, 'book', 'e')
WHERE relnamespace = '"regress idem ""one"'::regnamespace AND relkind = 'p' ORDER BY relname;
ALTER TABLE a_broken_g1 ENABLE ROW LEVEL SECURITY;
CREATE RULE r AS ON DELETE TO c_broken_g2 DO INSTEAD NOTHING;
SET ROLE regress_idem_two;
SELECT idem_create_table('regress_idem_two.other', generations => 3) \g /dev/null
SELECT FROM idem_accept('regress_idem_two.other', 'book', 'e');
RESET ROLE;
UPDATE idem_generation SET opened_at = opened_at - interval '30 days' WHERE dedup::text ~ 'broken|In.box|select|other';
SET ROLE regress_idem_one;
SET search_path = '';
-- Passes are read committed, whatever their caller begins in.
SET default_transaction_isolation = 'serializable';
CALL public.idem_purge();
CREATE TEMP VIEW status AS
    SELECT relname::text COLLATE "default" AS name, last_error, last_error_at, last_error_at = last_change AS just_now,
           turned, current_generation AS current
    FROM pg_class JOIN public.idem_purge_status ON dedup = oid JOIN public.idem_control USING (dedup)
    WHERE relnamespace IN ('"regress idem ""one"'::regnamespace, 'regress_idem_two'::regnamespace);
CREATE TEMP TABLE status_broken AS TABLE status;
CALL public.idem_purge();
CREATE TEMP TABLE status_again AS TABLE status;
RESET default_transaction_isolation;
ALTER TABLE "regress idem ""one".a_broken_g1 DISABLE ROW LEVEL SECURITY;
CALL public.idem_purge();
CREATE TEMP TABLE status_repaired AS TABLE status;
RESET ROLE;
SET search_path = purge, public;

-- A dropped table
SELECT idem_create_table('dropped') \g /dev/null
SELECT 'dropped'::regclass::oid AS dropped \gset
DROP TABLE dropped;

BEGIN;
SELECT plan(55);

-- When

SELECT results_eq(
    'SELECT k, string_agg(current::text, '' '' ORDER BY what) FROM span GROUP BY k ORDER BY k',
    $$VALUES (2, '0 0 1 1 1 2'), (3, '0 0 1 1 2'), (4, '0 0 1 1 2'), (8, '0 0 1 1 2'), (64, '0 0 1 1 2')$$,
    'a ring turns when it is due, and not while its current generation is empty');
SELECT ok(:'was_full', 'two slots, and the first one lives: the ring is full');
SELECT is(:turned, 1, 'it has not turned');
SELECT ok(:'not_full', 'when the first has expired, it is not');
SELECT is(outcome, 'duplicate', 'what came when it was full is known') FROM idem_accept('span_2', 'book', 'f');
SELECT is(outcome, 'acquired', 'what expired is not') FROM idem_accept('span_2', 'book', 'e');

-- The census

SELECT is(ROW(events, unsettled, slot, partition)::text, '(14,11,0,outbox_g0)', 'sealed: what it holds') FROM sealed;
SELECT is(newest_expiry, :'newest_expiry'::timestamptz, 'until when its settled events live') FROM sealed;
SELECT is(droppable_at, newest_expiry, 'then it can be emptied') FROM sealed;
SELECT ok(opened_at <= sealed_at AND sealed_at <= scanned_at AND bytes > 0, 'when it was opened, sealed and scanned')
FROM sealed;

-- Moved

SELECT is_empty('SELECT FROM outbox_after WHERE slot = 0', 'the generation is emptied');
SELECT set_eq(
    $$SELECT to_jsonb(a) - 'slot' FROM outbox_after a$$,
    $$SELECT to_jsonb(b) - 'slot' FROM outbox_before b WHERE state <> 'done' AND event_id <> 'given up'$$,
    'its unsettled events are in the current one, as they were, but for what is given up');
SELECT is(slot, 1::smallint, 'that is where they are') FROM outbox_after GROUP BY slot;
SELECT is(ROW(turned, retired, events_freed, events_moved, events_given_up)::text, '(1,1,4,10,1)', 'all of it is counted')
FROM outbox_status;
SELECT ok(bytes_freed > 0, 'and the bytes') FROM outbox_status;
SELECT results_eq('TABLE outbox_idle', 'TABLE outbox_status', 'another pass has nothing to do, and writes nothing');
SELECT is_empty($$SELECT FROM idem_generation WHERE dedup = 'outbox'::regclass AND generation = 0$$,
    'the generation is not in the ring any more');

-- What was moved is held, settled and taken over as before

SELECT is(ROW(outcome, attempt)::text, '(busy,1)', 'a lease that runs') FROM idem_acquire('outbox', 'send', 'runs', 'b');
SELECT is(ROW(outcome, attempt)::text, '(acquired,1)', 'its owner, again')
FROM idem_acquire('outbox', 'send', 'runs', 'b', owner => 'token runs');
SELECT is(outcome, 'conflict', 'its fingerprint')
FROM idem_acquire('outbox', 'send', 'runs', 'b', idem_fingerprint('x'::text));
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'commits', 'b', attempt => 2)$$, 'ID002', NULL,
    'nobody has a later attempt');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'commits', 'b', attempt => 1)$$, 'its holder commits');
SELECT is(outcome, 'duplicate', 'which is known') FROM idem_acquire('outbox', 'send', 'commits', 'b');
SELECT is(outcome, 'backoff', 'one fails') FROM idem_release('outbox', 'send', 'fails', 'b', attempt => 1, error => 'no');
SELECT is(outcome, 'backoff', 'one is given back') FROM idem_release('outbox', 'send', 'gives', 'b', attempt => 1);
SELECT ok(idem_extend('outbox', 'send', 'extends', 'b', attempt => 1) > now(), 'one is extended');
SELECT is(ROW(outcome, attempt)::text, '(acquired,2)', 'one that ran out is taken over')
FROM idem_acquire('outbox', 'send', 'ran out', 'b');
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'ran out', 'b', attempt => 1)$$, 'ID001', NULL,
    'so its first holder comes too late');
SELECT is(ROW(outcome, attempt)::text, '(acquired,2)', 'one that failed is taken up')
FROM idem_acquire('outbox', 'send', 'failed', 'b');
SELECT is(outcome, 'backoff', 'one that was given back is not due') FROM idem_acquire('outbox', 'send', 'given back', 'b');
SELECT is(outcome, 'dead', 'one is dead') FROM idem_acquire('outbox', 'send', 'dead', 'b');
SELECT is(ROW(outcome, attempt)::text, '(acquired,1)', 'what was given up is new')
FROM idem_acquire('outbox', 'send', 'given up', 'b');
UPDATE outbox SET state = 'done', claimable_at = NULL, settled_at = now() WHERE event_id = 'by hand';
SELECT is(outcome, 'duplicate', 'one is settled by hand') FROM idem_acquire('outbox', 'send', 'by hand', 'b');

-- Never by the census alone

SELECT is(ROW(outcome, attempt)::text, '(duplicate,1)', 'a wrong census costs no live event')
FROM idem_accept('wrong', 'book', 'lives');
SELECT is(ROW(oldest_generation, current_generation)::text, '(0,1)', 'its generation stays') FROM idem_control
WHERE dedup = 'wrong'::regclass;
SELECT ok(newest_expiry > now() + interval '29 days', 'and is put right') FROM idem_generation
WHERE dedup = 'wrong'::regclass AND generation = 0;

-- All that the caller owns

SELECT results_eq('SELECT name, current FROM status_broken ORDER BY name',
    $$VALUES ('a_broken', 0::bigint), ('b In.box''s "name"', 1), ('c_broken', 0), ('other', 0), ('select', 1)$$,
    'those of the caller turn, but for the broken ones');
SELECT results_eq(
    'SELECT name, last_error FROM status_broken WHERE last_error IS NOT NULL ORDER BY name',
    $$VALUES ('a_broken', 'dedup table "a_broken" is not in order'),
             ('c_broken', 'dedup table "c_broken" is not in order')$$,
    'of these it is known why');
SELECT is(count(*), 2::bigint, 'and when') FROM status_broken WHERE just_now AND last_error_at > now() - interval '1 hour';
SELECT results_eq('TABLE status_again', 'TABLE status_broken', 'the same failure again is no news');
SELECT is(ROW(last_error, last_error_at, current)::text, '(,,1)', 'the one that is repaired turns') FROM status_repaired
WHERE name = 'a_broken';
SELECT is(last_error, 'dedup table "c_broken" is not in order', 'the other is as before') FROM status_repaired
WHERE name = 'c_broken';
SELECT is(count(*), 0::bigint, 'nothing was done to the table of somebody else') FROM status_repaired
WHERE name = 'other' AND (turned IS NOT NULL OR last_error IS NOT NULL);

-- Refused, and nothing written

CREATE TEMP TABLE before AS SELECT * FROM idem_control;
CREATE TABLE ordinary ();
SELECT throws_ok('CALL idem_purge()', '25001', 'idem_purge cannot run inside a transaction block', 'in a transaction');
SELECT throws_ok($$CALL idem_purge('outbox')$$, '25001', 'idem_purge cannot run inside a transaction block',
    'for one table too');
SELECT throws_ok($$DO 'BEGIN CALL idem_purge(); END'$$, '25001', 'idem_purge cannot run inside a transaction block',
    'not in a DO there either');
SELECT throws_ok($$CALL idem_purge('nowhere')$$, '42P01', NULL, 'no such table');
SELECT set_eq('SELECT * FROM idem_control', 'TABLE before', 'nothing was written');

-- The views, as anybody sees them

CREATE ROLE regress_idem_none;
GRANT USAGE ON SCHEMA purge TO regress_idem_none;
SET LOCAL ROLE regress_idem_none;
SELECT is(count(*), 3::bigint, 'anybody sees each table in each view') FROM (
    SELECT dedup FROM idem_tables UNION ALL SELECT dedup FROM idem_purge_status
    UNION ALL SELECT dedup FROM idem_generations WHERE sealed_at IS NULL) v WHERE dedup = 'purge.outbox'::regclass;
SELECT is(ROW(mode, slots, oldest_generation, current_generation)::text, '(lease,3,1,1)', 'its ring') FROM idem_tables
WHERE dedup = 'purge.outbox'::regclass;
SELECT is(ROW(slot, partition)::text, '(1,outbox_g1)', 'its generations') FROM idem_generations
WHERE dedup = 'purge.outbox'::regclass;
RESET ROLE;
SELECT is(count(*), 0::bigint, 'a table that was dropped is in no view') FROM (
    SELECT dedup FROM idem_tables UNION ALL SELECT dedup FROM idem_purge_status
    UNION ALL SELECT dedup FROM idem_generations) v WHERE dedup = :dropped::regclass;
SELECT is(ROW(oldest_generation, in_the_way)::text, '(0,)', 'a generation that has not expired: nothing is in the way')
FROM idem_purge_status WHERE dedup = 'wrong'::regclass;
SELECT is(ROW(oldest_generation, droppable_at)::text, '(,)', 'only a current generation: nothing is to be emptied')
FROM idem_purge_status WHERE dedup = 'outbox'::regclass;
SELECT is_empty($$SELECT attname FROM pg_attribute WHERE attrelid = ANY (ARRAY['idem_tables', 'idem_generations',
                      'idem_purge_status', 'idem_generation', 'idem_purge_state']::regclass[])
                      AND attnum > 0 AND col_description(attrelid, attnum) IS NULL$$, 'each column has a comment');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA purge CASCADE;
DROP SCHEMA "regress idem ""one" CASCADE;
DROP SCHEMA regress_idem_two CASCADE;
DROP OWNED BY regress_idem_one, regress_idem_two;
DROP ROLE regress_idem_one, regress_idem_two;
