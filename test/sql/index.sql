-- Further indexes and constraints on a partition: idem's writes keep the ones and obey the others.
BEGIN;
SELECT plan(33);

SELECT idem_create_table('outbox', mode => 'lease', generations => 2) \g /dev/null
-- This session has written to the partition before there was any of them.
SELECT idem_acquire('outbox', 'send', 'first', owner => 'token-1', payload => '{"to": "A"}') \g /dev/null

CREATE INDEX by_owner ON outbox_g0 (owner);
CREATE INDEX by_event ON outbox (handler, event_id);
CREATE INDEX by_words ON outbox_g0 (lower(event_id) COLLATE "C") INCLUDE (attempt);
CREATE INDEX failed_only ON outbox_g0 (failures) WHERE state = 'failed';
CREATE INDEX by_payload ON outbox_g0 USING gin (payload);

SELECT idem_acquire('outbox', 'send', 'Second', owner => 'token-2', payload => '{"to": "B"}') \g /dev/null
SELECT idem_acquire('outbox', 'send', 'third', owner => 'token-2', payload => '{"to": "B"}') \g /dev/null
SELECT idem_acquire('outbox', 'send', 'fourth', owner => 'token-3') \g /dev/null
SELECT idem_release('outbox', 'send', 'Second', error => 'no') \g /dev/null
SELECT idem_extend('outbox', 'send', 'first') \g /dev/null
SELECT idem_commit('outbox', 'send', 'fourth', result => '4') \g /dev/null
SELECT idem_acquire('outbox', 'send', 'fifth', owner => 'token-2') \g /dev/null

-- Read through an index: an entry that is missing is a row that is missing.
CREATE FUNCTION pg_temp.by_index(index text, condition text) RETURNS text LANGUAGE plpgsql
SET enable_seqscan = off SET jit = off AS $$
DECLARE
    query text := format('SELECT string_agg(event_id, '','' ORDER BY event_id) FROM outbox_g0 WHERE %s', condition);
    plan json;
    answer text;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan;
    IF plan::text NOT LIKE '%"Index Name": "' || index || '"%' THEN
        RAISE EXCEPTION 'index "%" is not used: %', index, plan;
    END IF;
    EXECUTE query INTO answer;
    RETURN answer;
END $$;

SELECT is(pg_temp.by_index('by_owner', $$owner = 'token-1'$$), 'first', 'a plain index has rows from before');
SELECT is(pg_temp.by_index('by_owner', $$owner = 'token-2'$$), 'Second,fifth,third', 'and those that idem wrote since');
SELECT is(pg_temp.by_index('outbox_g0_handler_event_id_idx', $$handler = 'send' AND event_id = 'first'$$), 'first',
    'an index of the parent');
SELECT is(pg_temp.by_index('outbox_g0_handler_event_id_idx', $$handler = 'send' AND event_id >= 'a'$$),
    'fifth,first,fourth,third', 'all of it');
SELECT is(pg_temp.by_index('by_words', $$lower(event_id) = 'second'$$), 'Second', 'an index on an expression');
SELECT is(pg_temp.by_index('failed_only', $$failures = 1 AND state = 'failed'$$), 'Second',
    'a partial index has what came into it');
SELECT is(pg_temp.by_index('outbox_g0_claimable_at_idx', 'claimable_at IS NOT NULL'), 'Second,fifth,first,third',
    'so has idem''s own of what is due');
SELECT is(pg_temp.by_index('by_payload', $$payload @> '{"to": "B"}'$$), 'Second,third', 'an index of another kind');
SELECT is(pg_temp.by_index('outbox_g0_pkey', $$key = idem_key('send', 'first')$$), 'first', 'and the primary key');

SELECT is(outcome, 'acquired', 'a failed event is taken again')
FROM idem_acquire('outbox', 'send', 'Second', owner => 'token-4');
SELECT is(pg_temp.by_index('failed_only', $$failures = 1 AND state = 'failed'$$), NULL,
    'a partial index loses what left it');
SELECT is(pg_temp.by_index('by_owner', $$owner = 'token-4'$$), 'Second', 'and another gains it');
SELECT is(pg_temp.by_index('by_owner', $$owner = 'token-2'$$), 'fifth,third', 'under its new owner only');

-- Rebuilt

REINDEX TABLE outbox_g0;
SELECT is(outcome, 'busy', 'after REINDEX TABLE, what is there is found') FROM idem_acquire('outbox', 'send', 'third');
SELECT is(outcome, 'acquired', 'and new events are written')
FROM idem_acquire('outbox', 'send', 'sixth', owner => 'token-6');
SELECT is(pg_temp.by_index('by_owner', $$owner = 'token-6'$$), 'sixth', 'into the new indexes');
SELECT is(pg_temp.by_index('outbox_g0_pkey', $$key = idem_key('send', 'sixth')$$), 'sixth', 'the primary key too');
REINDEX INDEX outbox_g0_pkey;
SELECT is(outcome, 'busy', 'after REINDEX INDEX too') FROM idem_acquire('outbox', 'send', 'sixth');
SELECT is(outcome, 'acquired', 'new events, too') FROM idem_acquire('outbox', 'send', 'seventh');
SELECT is(outcome, 'busy', 'which are found') FROM idem_acquire('outbox', 'send', 'seventh');
ALTER TABLE outbox_g0 DROP CONSTRAINT outbox_g0_pkey;
ALTER TABLE outbox_g0 ADD CONSTRAINT another_key PRIMARY KEY (key);
SELECT is(outcome, 'busy', 'another primary key on key serves as well') FROM idem_acquire('outbox', 'send', 'seventh');
SELECT is(outcome, 'acquired', 'for new events, too') FROM idem_acquire('outbox', 'send', 'eighth');
DROP INDEX by_owner, by_words, by_event, failed_only, by_payload, outbox_g0_claimable_at_idx;
SELECT is(outcome, 'acquired', 'no index but the primary key is needed') FROM idem_acquire('outbox', 'send', 'ninth');
CREATE INDEX again ON outbox_g0 (claimable_at) WHERE claimable_at IS NOT NULL;
SELECT is(outcome, 'acquired', 'and it may come again') FROM idem_acquire('outbox', 'send', 'tenth');
SELECT is(pg_temp.by_index('again', 'claimable_at IS NOT NULL'),
    'Second,eighth,fifth,first,ninth,seventh,sixth,tenth,third', 'with all rows');

-- Constraints

ALTER TABLE outbox ADD CONSTRAINT known_handler CHECK (handler <> 'unknown');
SELECT throws_ok($$SELECT idem_acquire('outbox', 'unknown', 'e')$$, '23514',
    'new row for relation "outbox_g0" violates check constraint "known_handler"', 'a CHECK constraint is obeyed');
SELECT is_empty($$SELECT FROM outbox WHERE handler = 'unknown'$$, 'nothing is written');
SELECT is(outcome, 'acquired', 'what it allows goes on') FROM idem_acquire('outbox', 'known', 'e');
ALTER TABLE outbox ADD CONSTRAINT small_result CHECK (length(result::text) < 10);
SELECT throws_ok($$SELECT idem_commit('outbox', 'known', 'e', result => '"long enough"')$$, '23514', NULL,
    'for a row that changes, too');
SELECT is(state, 'processing', 'which stays as it was') FROM idem_lookup('outbox', 'known', 'e');
SELECT lives_ok($$SELECT idem_commit('outbox', 'known', 'e', result => '"short"')$$, 'and is settled otherwise');
ALTER TABLE outbox DROP CONSTRAINT known_handler;
SELECT is(outcome, 'acquired', 'until it is dropped') FROM idem_acquire('outbox', 'unknown', 'e');
ALTER TABLE outbox ADD CONSTRAINT owned CHECK (owner IS NOT NULL) NOT VALID;
SELECT throws_ok($$SELECT idem_acquire('outbox', 'send', 'nobody''s')$$, '23514', NULL,
    'one that old rows need not obey, new ones must');

SELECT * FROM finish();
ROLLBACK;
