-- idem_accept: a claim that is settled by the transaction which makes it.
CREATE SCHEMA accept;
SET search_path = accept, public;

-- Committed rows, as another delivery finds them. Times are set by hand, so that nobody waits for them.
DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_accept('inbox', 'book', 'done', result => '{"balance": 90}');
    PERFORM idem_accept('inbox', 'book', 'expired', result => '{"balance": 80}');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{}', owner => 'token-1')
        FROM unnest(ARRAY['running', 'run out', 'ending', 'failed', 'due soon', 'due later', 'given back', 'dead']) e;
    PERFORM idem_release('outbox', 'send', 'failed', error => 'no', attempt => 1);
    PERFORM idem_release('outbox', 'send', 'given back', attempt => 1);
    PERFORM idem_release('outbox', 'send', e, error => 'no', attempt => 1, retry_after => '1 hour')
        FROM unnest(ARRAY['due soon', 'due later']) e;
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
    UPDATE outbox SET claimable_at = clock_timestamp() + interval '0.2 seconds' WHERE event_id IN ('ending', 'due soon');
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
    UPDATE outbox SET state = 'dead', claimable_at = 'infinity', error = 'five tries' WHERE event_id = 'dead';
END $$;

BEGIN;
SELECT plan(55);

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,1,,,)',
    'a new event is acquired')
FROM idem_accept('inbox', 'book', 'new', 'may', idem_fingerprint('1'::text), now(), '{"balance": 70}');
SELECT is(ROW(key = idem_key('book', 'new', 'may'), state, attempt, failures, batch,
        fingerprint = idem_fingerprint('1'::text), result, expires_at - first_seen_at)::text,
    '(t,done,1,0,may,t,"{""balance"": 70}","30 days")', 'and done, with what it brings')
FROM inbox WHERE event_id = 'new';
SELECT is(num_nulls(claimed_at, claimable_at, settled_at, owner, error, payload, extra), 7, 'and nothing else')
FROM inbox WHERE event_id = 'new';
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(f,duplicate,1,"{""balance"": 70}")', 'again: duplicate')
FROM idem_accept('inbox', 'book', 'new', 'may', result => '{"balance": 60}');
SELECT is(result, '{"balance": 70}', 'whose result counts for nothing') FROM inbox WHERE event_id = 'new';
SELECT is(outcome, 'duplicate', 'to idem_acquire too') FROM idem_acquire('inbox', 'book', 'new', 'may');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'new', 'may', '{"balance": 70}')$$,
    'committing it once more says the same, and is allowed');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'new', 'may', '{"balance": 60}')$$, '22023',
    'event "new" of handler "book" was committed with another result', 'with another result it says something else');
SELECT throws_ok($$SELECT idem_release('inbox', 'book', 'new', 'may', 'changed my mind', attempt => 1)$$, 'ID002',
    'no such claim on event "new" of handler "book"', 'and what is settled can''t be released');

SELECT is(ROW(acquired, outcome, attempt, result)::text, '(f,duplicate,1,"{""balance"": 90}")',
    'a committed event: duplicate')
FROM idem_accept('inbox', 'book', 'done');
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(t,acquired,2,)', 'an expired one: acquired')
FROM idem_accept('inbox', 'book', 'expired');
SELECT is(ROW(state, attempt, first_seen_at >= now(), result)::text, '(done,2,t,)', 'as a new one')
FROM inbox WHERE event_id = 'expired';

SELECT is(outcome, 'acquired', 'acquired, not settled') FROM idem_acquire('inbox', 'book', 'open');
SELECT throws_ok($$SELECT FROM idem_accept('inbox', 'book', 'open')$$, 'ID004',
    'event "open" of handler "book" is not settled yet', 'an open claim can''t be accepted on top');
SELECT throws_ok($$SELECT FROM idem_accept('inbox', 'book', 'open', wait => '1000 days')$$, 'ID004', NULL,
    'and is not waited for, as it would be for ever');

-- In one statement with the business write

CREATE TABLE ledger (event_id text, cents int);
SELECT lives_ok($$
    INSERT INTO ledger SELECT e.id, e.cents
    FROM (VALUES ('e1', 1000), ('e2', 2000), ('e1', 1000), ('e3', 3000), ('e1', 1000)) e (id, cents),
         idem_accept('inbox', 'ledger', e.id)
    WHERE acquired$$, 'deliveries of three events, with duplicates among them');
SELECT bag_eq('TABLE ledger', $$VALUES ('e1', 1000), ('e2', 2000), ('e3', 3000)$$, 'each is booked once');

-- What an ID004 says

CREATE FUNCTION pg_temp.heard(call text, OUT detail text, OUT hint text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
EXCEPTION WHEN SQLSTATE 'ID004' THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
SELECT is(h::text, '("This transaction has acquired it.","Settle it with idem_commit or idem_release.")', 'one''s own claim')
FROM pg_temp.heard($$SELECT FROM idem_accept('inbox', 'book', 'open')$$) h;
SELECT is(h::text, format('("A lease on it runs until %s.","Answer the sender 409 or 503 with Retry-After, so that it is '
        'delivered again.")', claimable_at), 'a lease')
FROM outbox, pg_temp.heard($$SELECT FROM idem_accept('outbox', 'send', 'running')$$) h WHERE event_id = 'running';
SELECT is(detail, format('Its next try is due at %s.', claimable_at), 'a failed event')
FROM outbox, pg_temp.heard($$SELECT FROM idem_accept('outbox', 'send', 'due later')$$) h WHERE event_id = 'due later';

-- In an expression: what the same statement has claimed is no answer, what an earlier one has is

SELECT is((idem_accept('inbox', 'ledger', 'in an expression')).outcome, 'acquired', 'alone in an expression');
SELECT is((idem_accept('inbox', 'ledger', 'in an expression')).outcome, 'duplicate', 'and in another statement');
SELECT throws_ok($$SELECT (idem_accept('inbox', 'ledger', e)).acquired FROM unnest('{twice,twice}'::text[]) e$$, '21000',
    'event "twice" of handler "ledger" is asked for a second time by one statement', 'twice in one statement');
SELECT throws_ok(format('SELECT (%s).*', call), '21000', NULL, 'once a column: ' || call)
FROM unnest(ARRAY[$$idem_accept('inbox', 'ledger', 'c')$$, $$idem_acquire('inbox', 'ledger', 'c')$$,
                  $$idem_receive('inbox', 'ledger', 'c')$$]) call;
SELECT is(m::text, '(many,t,acquired,1)', 'what returns rows is called once for all columns')
FROM (SELECT (idem_acquire_many('outbox', 'ledger', '{many}')).*) c, LATERAL (SELECT event_id, acquired, outcome, attempt) m;
SELECT lives_ok($$SELECT (idem_acquire('outbox', 'ledger', 'c', owner => 'token-1')).*$$, 'the owner gets the same claim each time');
SELECT bag_eq($$SELECT event_id, outcome FROM idem_acquire_many('outbox', 'ledger', '{a,b,a}')$$,
    $$VALUES ('a', 'acquired'::idem_outcome), ('b', 'acquired'), ('a', 'duplicate')$$, 'duplicates in one array are answered');
SELECT is(count(*)::int, 2, 'in a select list too') FROM (SELECT idem_acquire_many('outbox', 'ledger', '{d,d}')) m;

-- Within functions each statement counts

CREATE FUNCTION pg_temp.accept(events text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    event text;
    answers text[];
BEGIN
    FOREACH event IN ARRAY events LOOP
        answers := answers || (idem_accept('inbox', 'loop', event)).outcome::text;
    END LOOP;
    RETURN array_to_string(answers, ' ');
END $$;
SELECT is(pg_temp.accept('{a,b,a,a}'), 'acquired acquired duplicate duplicate', 'a loop in PL/pgSQL');
SELECT is(pg_temp.accept('{a,c}'), 'duplicate acquired', 'and the next call of it');
CREATE FUNCTION pg_temp.accept_one(event text) RETURNS idem_outcome LANGUAGE sql AS
    $$ SELECT outcome FROM idem_accept('inbox', 'one', event) $$;
SELECT is(string_agg(pg_temp.accept_one(e)::text, ' '), 'acquired duplicate', 'a function with the claim in FROM, once a row')
FROM unnest('{a,a}'::text[]) e;

-- The planner asks what costs less first

CREATE FUNCTION pg_temp.is_open(id text) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN false; END';
SELECT is(count(*)::int, 0, 'an event that another condition rules out')
FROM ledger WHERE (idem_accept('inbox', 'ruled out', event_id)).acquired AND pg_temp.is_open(event_id);
SELECT is(count(*)::int, 0, 'is not claimed') FROM inbox WHERE handler = 'ruled out';
CREATE FUNCTION pg_temp.uses_jit(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    plan jsonb;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    RETURN (plan #>> '{0,Plan,Total Cost}')::float8 >= current_setting('jit_above_cost')::float8;
END $$;
SELECT ok(NOT pg_temp.uses_jit(query), 'a claim makes no plan so dear that it is compiled: ' || query)
FROM unnest(ARRAY[$$SELECT FROM ledger WHERE event_id = 'e1' AND (idem_accept('inbox', 'book', 'e')).acquired$$,
                  $$SELECT FROM generate_series(1, 30000) i, idem_accept('inbox', 'book', i::text) WHERE acquired$$,
                  $$SELECT (idem_accept('inbox', 'book', i::text)).acquired FROM generate_series(1, 30000) i$$]) query;

-- In lease mode it settles all the same

SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,1)', 'a new event in lease mode')
FROM idem_accept('outbox', 'send', 'new', result => '[]');
SELECT is(ROW(state, claimable_at, result, expires_at - first_seen_at)::text, '(done,,[],"30 days")', 'is done')
FROM outbox WHERE event_id = 'new';
SELECT throws_ok(format('SELECT FROM idem_accept(''outbox'', ''send'', ''running'', wait => %L)', wait), 'ID004',
    'event "running" of handler "send" is not settled yet', 'a lease runs for longer than wait: ' || coalesce(wait, 'null'))
FROM unnest(ARRAY['0', NULL, '1 second', '14 minutes']) wait;
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'a lease that ends within wait is waited for')
FROM idem_accept('outbox', 'send', 'ending', wait => '1000 days');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'and so is a retry that is due within wait')
FROM idem_accept('outbox', 'send', 'due soon', wait => '1000 days');
SELECT throws_ok($$SELECT FROM idem_accept('outbox', 'send', 'due later')$$, 'ID004',
    'event "due later" of handler "send" is not settled yet', 'one that is due later is not');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'a lease ran out: taken over')
FROM idem_accept('outbox', 'send', 'run out');
SELECT is(ROW(state, attempt, failures, owner, payload, claimable_at)::text, '(done,2,1,,,)',
    'and done; the payload is dropped')
FROM outbox WHERE event_id = 'run out';
SELECT throws_ok($$SELECT idem_commit('outbox', 'send', 'run out', attempt => 1)$$, 'ID001',
    'lease lost on event "run out" of handler "send"', 'its old holder comes too late');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'failed: acquired')
FROM idem_accept('outbox', 'send', 'failed');
SELECT is(ROW(state, failures, error, payload)::text, '(done,1,,)', 'and done') FROM outbox WHERE event_id = 'failed';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'given back: acquired')
FROM idem_accept('outbox', 'send', 'given back');
SELECT is(ROW(acquired, outcome, attempt, error)::text, '(f,dead,1,"five tries")', 'dead: dead')
FROM idem_accept('outbox', 'send', 'dead');
SELECT is(state, 'dead', 'and stays so') FROM outbox WHERE event_id = 'dead';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA accept CASCADE;
