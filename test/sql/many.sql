-- Many events in one call: the same as a call for each, whatever is known of them, and answered in the order of the
-- input.
CREATE SCHEMA many;
SET search_path = many, public;

-- Every kind of event that there is, whatever fingerprint it was seen with, and with which it is asked for, and whether
-- what asks for it is older than the table remembers. Its id says all that.
CREATE TABLE kind AS
SELECT concat_ws('/', state, stored, asked, old, generation) AS event_id, state, generation,
       idem_fingerprint(nullif(stored, 'none')) AS stored, idem_fingerprint(nullif(asked, 'none')) AS fingerprint,
       CASE old WHEN 'old' THEN timestamptz '2000-01-01' END AS occurred_at
FROM unnest(ARRAY['new', 'received', 'given back', 'failed', 'failed, not due', 'dead', 'done', 'expired',
                  'failed, expired', 'running', 'run out', 'run out once more']) state,
     unnest(ARRAY['none', 'A', 'B']) stored, unnest(ARRAY['none', 'A']) asked, unnest(ARRAY['old', 'any']) old,
     unnest(ARRAY['sealed', 'current']) generation;

-- Times are set by hand, so that nobody waits for them.
CREATE PROCEDURE fill(dedup regclass, in_generation text) LANGUAGE plpgsql AS $$
DECLARE
    lease boolean := (SELECT mode = 'lease' FROM idem_registry r WHERE r.dedup = fill.dedup);
    k kind;
BEGIN
    FOR k IN SELECT * FROM kind
             WHERE generation = in_generation AND state <> 'new' AND (lease OR state NOT LIKE 'run%') LOOP
        IF k.state = 'received' THEN
            PERFORM idem_receive(dedup, 'book', k.event_id, payload => '{"p": 1}', fingerprint => k.stored);
            CONTINUE;
        END IF;
        PERFORM idem_acquire(dedup, 'book', k.event_id, payload => '{"p": 1}', fingerprint => k.stored,
                             owner => 'token');
        IF k.state IN ('done', 'expired') THEN
            PERFORM idem_commit(dedup, 'book', k.event_id, result => to_jsonb(k.event_id));
        ELSIF k.state = 'given back' THEN
            PERFORM idem_release(dedup, 'book', k.event_id);
        ELSIF k.state NOT LIKE 'run%' THEN
            PERFORM idem_release(dedup, 'book', k.event_id, error => 'first');
        END IF;
    END LOOP;
    EXECUTE format($sql$
        UPDATE %s SET
            state = CASE WHEN event_id LIKE 'dead/%%' THEN 'dead' ELSE state END,
            claimable_at = CASE WHEN event_id LIKE 'dead/%%' THEN 'infinity'
                                WHEN event_id LIKE 'failed, not due/%%' THEN now() + interval '1 hour'
                                WHEN event_id LIKE 'run out%%' THEN now() ELSE claimable_at END,
            failures = CASE WHEN event_id LIKE 'run out once more/%%' THEN 9 ELSE failures END,
            expires_at = CASE WHEN event_id LIKE '%%expired/%%' THEN now() ELSE expires_at END$sql$, dedup);
END $$;

-- Two equal tables in each mode, one for single calls and one for the others.
SELECT idem_create_table('single_transaction', generations => 4),
       idem_create_table('many_transaction', generations => 4),
       idem_create_table('single_lease', mode => 'lease', generations => 4),
       idem_create_table('many_lease', mode => 'lease', generations => 4) \g /dev/null
CALL fill('single_transaction', 'sealed');
CALL fill('single_lease', 'sealed');
CALL idem_rotate('single_transaction');
CALL idem_rotate('many_transaction');
CALL idem_rotate('single_lease');
CALL idem_rotate('many_lease');
CALL fill('single_transaction', 'current');
CALL fill('single_lease', 'current');
INSERT INTO many_transaction SELECT * FROM single_transaction;
INSERT INTO many_lease SELECT * FROM single_lease;

-- What can be compared of an answer, and of a row: the time between the calls says nothing.
CREATE FUNCTION told(a idem_event_claim) RETURNS text LANGUAGE sql AS $$
    SELECT ROW(a.event_id, a.acquired, a.outcome, a.attempt, a.first_seen_at < now(), a.retry_after > 0,
               a.retry_after > 1200, a.result, a.error)::text
$$;
CREATE FUNCTION told(event_id text, a idem_claim) RETURNS text LANGUAGE sql AS $$
    SELECT told(ROW(event_id, a.acquired, a.outcome, a.attempt, a.first_seen_at, a.retry_after, a.result, a.error))
$$;
CREATE FUNCTION rows(dedup regclass) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY EXECUTE format($sql$
        SELECT ROW(slot, event_id, state, attempt, failures, first_seen_at < now(), claimed_at IS NULL,
                   claimable_at > clock_timestamp(), claimable_at = 'infinity', expires_at > clock_timestamp(),
                   expires_at > clock_timestamp() + interval '31 days', settled_at < now(), fingerprint, owner, result, error,
                   payload, extra)::text
        FROM %s$sql$, dedup);
END $$;
-- The SQLSTATE of a call, which is undone.
CREATE FUNCTION outcome_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
    RAISE EXCEPTION SQLSTATE 'XX999';
EXCEPTION WHEN OTHERS THEN
    RETURN CASE sqlstate WHEN 'XX999' THEN 'done' ELSE sqlstate || ' ' || sqlerrm END;
END $$;

CREATE TABLE asked AS
SELECT array_agg(event_id ORDER BY md5(event_id)) AS ids, array_agg(fingerprint ORDER BY md5(event_id)) AS fingerprints,
       array_agg(occurred_at ORDER BY md5(event_id)) AS times, array_agg('{"p": 2}'::jsonb) AS payloads,
       array_agg(CASE WHEN fingerprint IS NULL THEN 'no' END ORDER BY md5(event_id)) AS errors
FROM kind;

SELECT plan(83);

-- Claiming

BEGIN;
CREATE TEMP TABLE single AS
SELECT k.event_id, told(k.event_id, t) AS transaction, told(k.event_id, l) AS lease
FROM kind k,
     idem_acquire('single_transaction', 'book', k.event_id, NULL, k.fingerprint, k.occurred_at, '{"p": 2}', 'token') t,
     idem_acquire('single_lease', 'book', k.event_id, NULL, k.fingerprint, k.occurred_at, '{"p": 2}', 'token') l;
SELECT results_eq(
    $$SELECT told(m) FROM asked,
      idem_acquire_many('many_transaction', 'book', ids, NULL, fingerprints, times, payloads, 'token') m$$,
    'SELECT transaction FROM single ORDER BY md5(event_id)',
    'claims in transaction mode: answered as single calls are, in the order of the input');
SELECT results_eq(
    $$SELECT told(m) FROM asked,
      idem_acquire_many('many_lease', 'book', ids, NULL, fingerprints, times, payloads, 'token') m$$,
    'SELECT lease FROM single ORDER BY md5(event_id)', 'leases too');
SELECT set_eq($$SELECT rows('many_transaction')$$, $$SELECT rows('single_transaction')$$, 'and the same is written');
SELECT set_eq($$SELECT rows('many_lease')$$, $$SELECT rows('single_lease')$$, 'of leases too');
SELECT bag_eq($$SELECT DISTINCT split_part(replace(lease, ', ', ' '), ',', 3) FROM single$$,
    ARRAY['acquired', 'duplicate', 'backoff', 'dead', 'conflict', 'stale'], 'there was every outcome but busy');
SELECT results_eq(
    $$SELECT told(m) FROM asked, idem_acquire_many('many_lease', 'book', ids) m$$,
    $$SELECT told(event_id, s) FROM kind, idem_acquire('single_lease', 'book', event_id) s ORDER BY md5(event_id)$$,
    'once more, without an owner: as single calls are answered, which is busy for most');
ROLLBACK;

-- Recording failures

BEGIN;
CREATE TEMP TABLE single AS
SELECT k.event_id, told(k.event_id, t) AS transaction, told(k.event_id, l) AS lease
FROM kind k,
     idem_release('single_transaction', 'book', k.event_id, NULL, CASE WHEN fingerprint IS NULL THEN 'no' END) t,
     idem_release('single_lease', 'book', k.event_id, NULL, CASE WHEN fingerprint IS NULL THEN 'no' END) l;
SELECT results_eq(
    $$SELECT told(m) FROM asked, idem_release_many('many_transaction', 'book', ids, errors => errors) m$$,
    'SELECT transaction FROM single ORDER BY md5(event_id)', 'failures after a rollback: answered as by single calls');
SELECT results_eq($$SELECT told(m) FROM asked, idem_release_many('many_lease', 'book', ids, errors => errors) m$$,
    'SELECT lease FROM single ORDER BY md5(event_id)', 'of leases too');
SELECT set_eq($$SELECT rows('many_transaction')$$, $$SELECT rows('single_transaction')$$, 'and the same is written');
SELECT set_eq($$SELECT rows('many_lease')$$, $$SELECT rows('single_lease')$$, 'of leases too');
SELECT cmp_ok(count(*), '>', 20::bigint, 'some were recorded') FROM many_lease WHERE error = 'no';
ROLLBACK;

-- Settling leases by attempt

BEGIN;
CREATE TEMP TABLE settled AS
SELECT event_id,
       outcome_of(format($$SELECT idem_commit('single_lease', 'book', %L, attempt => 1)$$, event_id)) AS committed,
       outcome_of(format($$SELECT idem_release('single_lease', 'book', %L, NULL, 'no', 1)$$, event_id)) AS failed
FROM kind;
SELECT results_eq(
    $$SELECT outcome_of(format('SELECT idem_commit_many(''many_lease'', ''book'', ARRAY[%L], attempts => ''{1}'')',
                               event_id))
      FROM settled ORDER BY event_id$$,
    'SELECT committed FROM settled ORDER BY event_id', 'idem_commit_many refuses what idem_commit refuses, in its words');
SELECT results_eq(
    $$SELECT outcome_of(format('SELECT idem_release_many(''many_lease'', ''book'', ARRAY[%L], NULL, ''{no}'', ''{1}'')',
                               event_id))
      FROM settled ORDER BY event_id$$,
    'SELECT failed FROM settled ORDER BY event_id', 'and idem_release_many what idem_release refuses');
SELECT cmp_ok(count(*) FILTER (WHERE committed = 'done' AND failed = 'done'), '>', 20::bigint, 'some are settled')
FROM settled;
SELECT throws_ok(
    $$SELECT idem_commit_many('many_lease', 'book', array_agg(event_id), attempts => array_agg(1)) FROM settled
      WHERE committed = 'done' OR event_id = 'dead/A/A/any/current'$$, 'ID002',
    'no such claim on event "dead/A/A/any/current" of handler "book"', 'a bad one among good ones is an error');
SELECT set_eq($$SELECT rows('many_lease')$$, $$SELECT rows('single_lease')$$, 'which undoes them all');

SELECT idem_commit('single_lease', 'book', event_id, attempt => 1, result => to_jsonb(event_id))
FROM settled WHERE event_id LIKE 'run%/A/A/%' \g /dev/null
SELECT idem_commit_many('many_lease', 'book', array_agg(event_id), attempts => array_agg(1),
                        results => array_agg(to_jsonb(event_id)))
FROM settled WHERE event_id LIKE 'run%/A/A/%' \g /dev/null
SELECT results_eq(
    $$SELECT told(event_id, r) FROM settled,
      idem_release('single_lease', 'book', event_id, NULL, CASE WHEN event_id LIKE '%old%' THEN 'no' END, 1, '1 hour') r
      WHERE event_id LIKE 'run%/B/A/%' ORDER BY event_id$$,
    $$SELECT told(m) FROM (SELECT array_agg(event_id ORDER BY event_id) AS ids, array_agg(1) AS attempts,
             array_agg(CASE WHEN event_id LIKE '%old%' THEN 'no' END ORDER BY event_id) AS errors
             FROM settled WHERE event_id LIKE 'run%/B/A/%') s,
      idem_release_many('many_lease', 'book', ids, NULL, errors, attempts, '1 hour') m$$,
    'failed and given back in one call, to be tried in an hour');
SELECT set_eq($$SELECT rows('many_lease')$$, $$SELECT rows('single_lease')$$, 'the same is written');
ROLLBACK;

-- Claims of the same transaction

BEGIN;
CREATE TEMP TABLE numbered AS
SELECT array_agg('n' || i) AS ids, array_agg(to_jsonb(i)) AS results,
       array_agg(CASE WHEN i % 3 = 0 THEN 'no' END) AS errors
FROM generate_series(1, 10000) i;
SELECT is(count(*) FILTER (WHERE acquired), 10000::bigint, 'ten thousand in one call')
FROM numbered, idem_acquire_many('many_transaction', 'book', ids);
CREATE TEMP TABLE kept AS
SELECT idem_commit_many('many_transaction', 'book', ids, results => results) AS until FROM numbered;
SELECT is(until, (SELECT min(expires_at) FROM many_transaction WHERE event_id ~ '^n[0-9]'),
    'are settled in one call, which tells until when all of them are remembered')
FROM kept;
SELECT results_eq($$SELECT event_id, outcome, result FROM numbered, idem_acquire_many('many_transaction', 'book', ids)$$,
    $$SELECT 'n' || i, 'duplicate'::idem_outcome, to_jsonb(i) FROM generate_series(1, 10000) i$$,
    'each as done, with its own result');
SELECT idem_acquire_many('many_lease', 'book', ids) FROM numbered \g /dev/null
SELECT is(count(*) FILTER (WHERE error = 'no'), 3333::bigint, 'as leases, ten thousand failed or given back')
FROM numbered, idem_release_many('many_lease', 'book', ids, errors => errors) WHERE outcome = 'backoff';
SELECT results_eq($$SELECT state::text, count(*) FROM many_lease WHERE event_id ~ '^n[0-9]' GROUP BY 1 ORDER BY 1$$,
    $$VALUES ('failed', 3333::bigint), ('pending', 6667)$$, 'each as it was told');
ROLLBACK;

BEGIN;
SAVEPOINT a;
SELECT FROM idem_acquire_many('many_transaction', 'book', ARRAY['a', 'b']);
ROLLBACK TO SAVEPOINT a;
SELECT throws_ok($$SELECT idem_commit_many('many_transaction', 'book', ARRAY['a', 'b'])$$, 'ID002', NULL,
    'claims whose savepoint was rolled back are none');
SELECT results_eq($$SELECT outcome, attempt FROM idem_acquire_many('many_transaction', 'book', ARRAY['a', 'b'])$$,
    $$VALUES ('acquired'::idem_outcome, 1), ('acquired', 1)$$, 'and free');
SAVEPOINT a;
SELECT idem_commit_many('many_transaction', 'book', ARRAY['a', 'b']) \g /dev/null
ROLLBACK TO SAVEPOINT a;
SELECT results_eq($$SELECT outcome FROM idem_acquire_many('many_transaction', 'book', ARRAY['a', 'b'])$$,
    $$VALUES ('busy'::idem_outcome), ('busy')$$, 'if it is the settling that is rolled back, they are open again');
SELECT throws_ok($$SELECT idem_commit_many('many_transaction', 'book', ARRAY['a', 'c', 'b'])$$, 'ID002',
    'no such claim on event "c" of handler "book"', 'one that is not claimed');
SELECT results_eq($$SELECT outcome FROM idem_acquire_many('many_transaction', 'book', ARRAY['a', 'b'])$$,
    $$VALUES ('busy'::idem_outcome), ('busy')$$, 'settles none of the others');
ROLLBACK;

-- The same event more than once in a call

CREATE FUNCTION outcomes(dedup regclass, ids text[], prints text[] DEFAULT NULL, times timestamptz[] DEFAULT NULL,
                         owner text DEFAULT NULL) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(outcome || CASE WHEN acquired THEN '!' ELSE '' END || coalesce(' ' || retry_after, ''), ', ')
    FROM idem_acquire_many(dedup, 'book', ids, NULL,
        (SELECT array_agg(idem_fingerprint(p) ORDER BY n) FROM unnest(prints) WITH ORDINALITY u (p, n)), times, NULL, owner)
$$;
BEGIN;
SELECT is(outcomes('many_transaction', '{x,y,x,z,x,y}'), 'acquired!, acquired!, duplicate, acquired!, duplicate, duplicate',
    'further claims on an event are duplicates of the first');
SELECT is(outcomes('many_lease', '{x,y,x,z,x,y}'), 'acquired!, acquired!, duplicate, acquired!, duplicate, duplicate',
    'as leases too');
SELECT is(outcomes('many_lease', '{o,o}', owner => 'token'), 'acquired!, duplicate', 'also if the owner is the same');
SELECT is(outcomes('many_transaction', '{x,y,x}'), 'busy 1, busy 1, busy 1',
    'where an earlier call has claimed it, none is');
SELECT is(outcomes('many_transaction', '{p,p,p}', '{A,B,A}'), 'acquired!, conflict, duplicate',
    'one with another fingerprint is a conflict with the first');
SELECT is(outcomes('many_transaction', '{q,q,q}', '{NULL,B,A}'), 'acquired!, duplicate, duplicate',
    'unless the first has none');
SELECT is(outcomes('many_lease', '{done/A/A/any/current,done/A/A/any/current}', '{B,A}'), 'conflict, duplicate',
    'each is compared with the event, not with the one before');
SELECT is(outcomes('many_lease', '{failed/A/A/any/current,failed/A/A/any/current}', '{NULL,B}'), 'acquired!, conflict',
    'also with what the event was seen with before');
SELECT is(outcomes('many_transaction', '{s,s,s}', times => ARRAY[timestamptz '2000-01-01', now(), '2000-01-01']),
    'stale, acquired!, duplicate', 'what is too old leaves it to the next one');
SELECT is(outcomes('many_transaction', array_fill('f'::text, ARRAY[1000])), 'acquired!' || repeat(', duplicate', 999),
    'a thousand of one');
SELECT is(count(*), 1::bigint, 'are one') FROM many_transaction WHERE event_id = 'f';
SELECT lives_ok($$SELECT idem_commit_many('many_transaction', 'book', '{x,y,x}', results => '{1,2,1}')$$,
    'to settle one twice alike is no error');
SELECT throws_ok($$SELECT idem_commit_many('many_lease', 'book', '{x,y,x}', results => '{1,2,3}')$$, '22023',
    'event "x" of handler "book" was committed with another result', 'but with two results it is');
SELECT results_eq($$SELECT outcome, error FROM idem_release_many('many_lease', 'book', '{y,y}', errors => '{no,never}')$$,
    $$VALUES ('backoff'::idem_outcome, 'no'), ('backoff', 'no')$$, 'the first failure of two counts');
SELECT is(failures, 1, 'once') FROM many_lease WHERE event_id = 'y';
ROLLBACK;

-- Arguments

BEGIN;
SELECT is_empty($$SELECT FROM idem_acquire_many('many_lease', 'book', '{}')$$, 'of no event, nothing is said');
SELECT is(idem_commit_many('many_lease', 'book', '{}', NULL, '{}', '{}'), NULL, 'nor done');
SELECT results_eq($$SELECT event_id FROM idem_acquire_many('many_lease', 'book', '[3:4][7:8]={{a,b},{c,d}}')$$,
    ARRAY['a', 'b', 'c', 'd'], 'an array of arrays is read as unnest reads it');
CREATE TEMP VIEW stored AS SELECT event_id, concat_ws(' ', tableoid, ctid, xmin, xmax) AS version FROM many_lease;
CREATE TEMP TABLE before AS TABLE stored;
SELECT throws_ok('SELECT ' || call, code, message, call)
FROM (VALUES
    ($$idem_acquire_many(NULL, 'book', '{a}')$$, '22004', 'dedup must not be null'),
    ($$idem_acquire_many('many_lease', NULL, '{a}')$$, '22004', 'handler must not be null'),
    ($$idem_acquire_many('many_lease', 'book', NULL)$$, '22004', 'event_ids must not be null'),
    ($$idem_acquire_many('many_lease', 'book', '{new,NULL}')$$, '22004', 'event_ids must not contain nulls'),
    ($$idem_commit_many('many_lease', 'book', '{new,NULL}')$$, '22004', 'event_ids must not contain nulls'),
    ($$idem_acquire_many('many_lease', 'book', '{new,""}')$$, '22023', 'event_id must not be empty'),
    ($$idem_acquire_many('many_lease', 'book', ARRAY['new', repeat('x', 1025)])$$, '22023', 'event_id is too long'),
    ($$idem_acquire_many('many_lease', 'book', '{new}', batch => '')$$, '22023', 'batch must not be empty'),
    ($$idem_acquire_many('many_lease', 'book', '{new,b}', fingerprints => '{NULL}')$$, '22023',
     'fingerprints must have as many elements as event_ids'),
    ($$idem_acquire_many('many_lease', 'book', '{new}', occurred_at => '{}')$$, '22023',
     'occurred_at must have as many elements as event_ids'),
    ($$idem_acquire_many('many_lease', 'book', '{new}', payloads => '{1,2}')$$, '22023',
     'payloads must have as many elements as event_ids'),
    ($$idem_acquire_many('many_lease', 'book', '{a,new}', fingerprints => '{NULL,abc}')$$, '22023',
     'fingerprint is not one of idem''s'),
    ($$idem_acquire_many('many_lease', 'book', '{new}', hot_window => '16 minutes')$$, '22023',
     'hot_window is longer than that of dedup table "many_lease"'),
    ($$idem_commit_many('many_lease', 'book', '{a,b}', results => '{1}')$$, '22023',
     'results must have as many elements as event_ids'),
    ($$idem_commit_many('many_lease', 'book', '{a}', attempts => '{0}')$$, '22023', 'attempt must be positive, not 0'),
    ($$idem_commit_many('many_lease', 'book', '{a}', cold_window => '31 days')$$, '22023',
     'cold_window is longer than that of dedup table "many_lease"'),
    ($$idem_release_many('many_lease', 'book', '{a,b}', errors => '{no}')$$, '22023',
     'errors must have as many elements as event_ids'),
    ($$idem_release_many('many_lease', 'book', '{a,b}', attempts => '{1,2,3}')$$, '22023',
     'attempts must have as many elements as event_ids'),
    ($$idem_release_many('many_lease', 'book', '{new}', errors => '{no}', retry_after => '-1 s')$$, '22023',
     'retry_after must be positive'),
    ($$idem_acquire_many('pg_class', 'book', '{a}')$$, '42809', '"pg_class" is not a dedup table')
) c (call, code, message);
SELECT set_eq('TABLE stored', 'TABLE before', 'and nothing is written');
CREATE FUNCTION context_of(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    context text;
BEGIN
    EXECUTE 'SELECT ' || call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS context = PG_EXCEPTION_CONTEXT;
    RETURN split_part(context, E'\n', 1);
END $$;
SELECT is(context_of(call), 'element 3 of the arrays', 'which element is bad: ' || call)
FROM (VALUES
    ($$idem_acquire_many('many_lease', 'book', '{a,b,NULL}')$$),
    ($$idem_commit_many('many_lease', 'book', '{a,b,"",c}')$$),
    ($$idem_release_many('many_lease', 'book', ARRAY['a', 'b', repeat('x', 1025)])$$),
    ($$idem_acquire_many('many_lease', 'book', '{a,b,c,d}', fingerprints => '{NULL,NULL,abc,abc}')$$),
    ($$idem_commit_many('many_lease', 'book', '{a,b,c}', attempts => '{1,1,0}')$$),
    ($$idem_release_many('many_lease', 'book', '{a,b,c}', attempts => '{1,1,-1}')$$)) c (call);
SET LOCAL idem.max_result_size = '1kB';
SELECT is(context_of($$idem_commit_many('many_lease', 'book', '{a,b,c}',
                                        results => ARRAY['1', '2', to_jsonb(repeat('x', 2000))])$$),
    'element 3 of the arrays', 'or what result');
RESET idem.max_result_size;
SELECT is(octet_length(error), 65536, 'a long error is cut')
FROM idem_release_many('many_lease', 'book', '{long error}', errors => ARRAY[repeat('x', 65537)]);

ROLLBACK;

-- Leases that are settled after the ring has turned; a policy that lets the work go on where the store can't be written

SELECT FROM idem_acquire_many('many_lease', 'book', '{a,b,c}');
CALL idem_rotate('many_lease');
SELECT idem_set_policy('many_transaction', on_unavailable => 'allow') \g /dev/null
BEGIN READ ONLY;
SET LOCAL client_min_messages = error;
SELECT lives_ok($$SELECT idem_acquire_many('many_lease', 'book', '{}')$$, 'a read-only transaction may do nothing');
SELECT throws_ok($$SELECT idem_acquire_many('many_lease', 'book', '{a}')$$, '25006',
    'cannot execute idem_acquire() in a read-only transaction', 'but not claim');
SELECT is(outcomes('many_transaction', '{x,y,x}'), 'bypassed!, bypassed!, duplicate',
    'where the policy allows it, the work is done unprotected, and once a call');
SELECT lives_ok($$SELECT idem_commit_many('many_transaction', 'book', '{x,y,x}')$$, 'and settled without an error');
ROLLBACK;
BEGIN;
SELECT is(outcomes('many_transaction', '{x,y,x}'), 'acquired!, acquired!, duplicate',
    'where the store is available, it is as everywhere');
SELECT lives_ok($$SELECT idem_commit_many('many_transaction', 'book', '{x,y,x}')$$, 'settled too');
SELECT lives_ok($$SELECT idem_commit_many('many_lease', 'book', '{a,b,c}', attempts => '{1,1,1}')$$,
    'leases are settled after the ring has turned');
SELECT results_eq($$SELECT ROW(event_id, state, slot)::text FROM many_lease WHERE event_id IN ('a', 'b', 'c') ORDER BY event_id$$,
    ARRAY['(a,done,2)', '(b,done,2)', '(c,done,2)'], 'in the generation that is current now');
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA many CASCADE;
