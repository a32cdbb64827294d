-- docs/calling.md: what holds for each form of calling, as far as one session can show it.
CREATE SCHEMA calling;
SET search_path = calling, public;
SELECT idem_create_table('inbox', generations => 3) \g /dev/null
CREATE TABLE ledger (event_id text, cents int DEFAULT 1000);
CREATE TABLE wallet (id int PRIMARY KEY, owner text, balance int);
INSERT INTO wallet VALUES (7, 'alice', 100);
-- Repeated often enough for the planner to want to remember answers.
CREATE TABLE deliveries AS SELECT 'e' || i % 20 AS event_id FROM generate_series(1, 20000) i;
ANALYZE deliveries;

BEGIN;
SELECT plan(20);

CREATE FUNCTION pg_temp.plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS
    'BEGIN RETURN QUERY EXECUTE ''EXPLAIN (COSTS off) '' || query; END';

-- Many deliveries, one effect an event

CREATE TEMPORARY TABLE form (name text, query text);
INSERT INTO form VALUES
    ('bare in FROM', $$SELECT d.event_id FROM deliveries d, idem_accept('inbox', 'bare', d.event_id) WHERE acquired$$),
    ('bare in JOIN LATERAL', $$SELECT d.event_id FROM deliveries d CROSS JOIN LATERAL idem_accept('inbox', 'lateral', d.event_id) WHERE acquired$$),
    ('idem_acquire_many', $$SELECT event_id FROM idem_acquire_many('inbox', 'many', ARRAY(SELECT d.event_id FROM deliveries d)) WHERE acquired$$);
SELECT is((SELECT count(*)::int FROM pg_temp.plan_of(query) line WHERE line ~ 'Memoize|Materialize'), 0,
    name || ': no answer is kept for the next row') FROM form;
CREATE FUNCTION pg_temp.effects(query text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    effects bigint;
BEGIN
    EXECUTE 'INSERT INTO ledger ' || query;
    GET DIAGNOSTICS effects = ROW_COUNT;
    RETURN effects;
END $$;
SELECT is(pg_temp.effects(query), 20::bigint, name || ': one effect an event') FROM form;
SELECT is(pg_temp.effects(query), 0::bigint, name || ': and none more') FROM form WHERE name <> 'idem_acquire_many';
SELECT idem_commit_many('inbox', 'many', ARRAY(SELECT DISTINCT event_id FROM deliveries)) \g /dev/null
SELECT ok((SELECT bool_or(line ~ 'Memoize') FROM pg_temp.plan_of(
    $$SELECT FROM deliveries d CROSS JOIN LATERAL (SELECT acquired FROM idem_accept('inbox', 'kept', d.event_id) LIMIT 1) a WHERE a.acquired$$) line),
    'in a subquery with LIMIT the planner keeps answers: the form which the documentation warns of');

-- One event, one statement

SELECT ok(string_agg(trim(line), ' ') ~ '^Result One-Time Filter: \(idem_accept\([^)]*\)\)\.acquired$',
    'an expression without a table is evaluated once')
FROM pg_temp.plan_of($$SELECT 1 WHERE (idem_accept('inbox', 'book', 'e')).acquired$$) line;
SELECT is(pg_temp.effects($$SELECT 'one' WHERE (idem_accept('inbox', 'book', 'one')).acquired$$), 1::bigint, 'it books');
SELECT is(pg_temp.effects($$SELECT 'one' WHERE (idem_accept('inbox', 'book', 'one')).acquired$$), 0::bigint, 'once');

PREPARE told AS
    WITH accept AS MATERIALIZED (SELECT * FROM idem_accept('inbox', 'book', 'told', result => '{"cents": 1000}')),
    effect AS (INSERT INTO ledger SELECT 'told', 1000 FROM accept WHERE acquired)
    SELECT outcome, result FROM accept;
SELECT results_eq('told', $$VALUES ('acquired'::idem_outcome, NULL::jsonb)$$, 'the form that answers the sender');
SELECT results_eq('told', $$VALUES ('duplicate'::idem_outcome, '{"cents": 1000}'::jsonb)$$, 'and a further delivery');
SELECT is(count(*)::int, 1, 'has booked once') FROM ledger WHERE event_id = 'told';

-- No match, but remembered: what one statement can't do

UPDATE wallet SET balance = balance - 10 FROM idem_accept('inbox', 'charge', 'nobody''s') WHERE owner = 'nobody' AND acquired;
SELECT is(state, 'done', 'an UPDATE that finds nothing leaves its event done') FROM inbox WHERE event_id = 'nobody''s';
-- ... and what a transaction can
SAVEPOINT delivery;
SELECT is(outcome, 'acquired', 'in a transaction') FROM idem_acquire('inbox', 'charge', 'undone');
WITH charged AS (UPDATE wallet SET balance = balance - 10 WHERE owner = 'nobody' RETURNING 1)
SELECT is(count(*)::int, 0, 'one looks at the number of rows') FROM charged;
ROLLBACK TO delivery;
SELECT is(count(*)::int, 0, 'and rolls back: it is not remembered') FROM inbox WHERE event_id = 'undone';

-- Where there is no row, an expression is not evaluated

UPDATE wallet SET balance = balance - 10 WHERE id = 8 AND (idem_accept('inbox', 'charge', 'no wallet')).acquired;
SELECT is(count(*)::int, 0, 'the event is not claimed') FROM inbox WHERE event_id = 'no wallet';

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA calling CASCADE;
