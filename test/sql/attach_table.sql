-- idem_attach_table: registers a dedup table whose registration was lost, from its shape and its rows.
BEGIN;
SELECT plan(48);

SELECT idem_create_table('inbox', '1 minute', '1 hour', 'lease', 4) \g /dev/null
SELECT throws_ok($$SELECT idem_attach_table('inbox')$$, '42710', 'dedup table "inbox" is registered already',
    'what is registered stays so');
SELECT is(mode, 'lease', 'as it was') FROM idem_registry WHERE dedup = 'inbox'::regclass;

-- As pg_dump -t and a restore leave it: the table, and nothing about it. A restored table is new to every session; the
-- GRANT makes this one load it anew.
CREATE FUNCTION pg_temp.lose_registration(dedup regclass DEFAULT 'inbox') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM idem_registry;
    DELETE FROM idem_control;
    EXECUTE format('GRANT SELECT ON %s TO pg_monitor', dedup);
    EXECUTE format('REVOKE SELECT ON %s FROM pg_monitor', dedup);
END $$;

SELECT is(outcome, 'acquired', 'an event') FROM idem_accept('inbox', 'book', 'known', result => '1');
SELECT is(outcome, 'acquired', 'a lease') FROM idem_acquire('inbox', 'book', 'running', owner => 'token-1');
SELECT pg_temp.lose_registration() \g /dev/null
SELECT throws_ok(call, '42809', 'dedup table "inbox" is not registered', 'without registration: ' || call)
FROM unnest(ARRAY['idem_acquire', 'idem_accept', 'idem_commit', 'idem_release', 'idem_extend', 'idem_lookup']) function,
     format('SELECT %s(''inbox'', ''book'', ''known'')', function) call;

SELECT is(idem_attach_table('inbox', '2 minutes', '2 hours', 'lease')::text, '', 'it returns void');
SELECT is(ROW(mode, hot_window, cold_window, unresolved_window)::text, '(lease,00:02:00,02:00:00,"365 days")',
    'with the policy that it is given')
FROM idem_registry WHERE dedup = 'inbox'::regclass;
SELECT is(ROW(slots, current_generation - oldest_generation + 1, current_generation % slots)::text, '(4,4,0)',
    'all its slots are in the ring, and the one with the latest claim is current')
FROM idem_control WHERE dedup = 'inbox'::regclass;
SELECT ok(bool_and(opened_at BETWEEN now() AND clock_timestamp()), 'opened now')
FROM idem_generation WHERE dedup = 'inbox'::regclass;
SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'what was settled is known')
FROM idem_acquire('inbox', 'book', 'known');
SELECT is(outcome, 'busy', 'what was claimed too') FROM idem_acquire('inbox', 'book', 'running');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'running', attempt => 1)$$, 'and can be settled');
SELECT is(outcome, 'acquired', 'new events are taken') FROM idem_acquire('inbox', 'book', 'new');

-- Rows in several slots

UPDATE inbox SET slot = 3, first_seen_at = '2026-01-03' WHERE event_id = 'known';
UPDATE inbox SET slot = 1, first_seen_at = '2026-01-02', claimed_at = '2026-01-05' WHERE event_id = 'running';
UPDATE inbox SET slot = 2, first_seen_at = '2026-01-04' WHERE event_id = 'new';
SELECT pg_temp.lose_registration() \g /dev/null
SELECT lives_ok($$SELECT idem_attach_table('inbox')$$, 'attached again');
SELECT is(ROW(slots, current_generation - oldest_generation + 1, current_generation % slots)::text, '(4,4,1)',
    'the slot with the latest claim is current, be it a retake') FROM idem_control WHERE dedup = 'inbox'::regclass;
SELECT is(ROW(mode, hot_window, cold_window)::text, '(transaction,00:15:00,"30 days")', 'the policy is the default one')
FROM idem_registry WHERE dedup = 'inbox'::regclass;
SELECT is(outcome, 'acquired', 'a new event') FROM idem_accept('inbox', 'book', 'newer');
SELECT is(slot, 1::smallint, 'goes to the current slot') FROM inbox WHERE event_id = 'newer';
SELECT is(outcome, 'duplicate', 'what is in another is known') FROM idem_accept('inbox', 'book', 'known');

-- An empty one

SELECT idem_create_table('empty', generations => 3) \g /dev/null
SELECT pg_temp.lose_registration('empty') \g /dev/null
SELECT lives_ok($$SELECT idem_attach_table('empty')$$, 'an empty table');
SELECT is(outcome, 'acquired', 'takes events') FROM idem_accept('empty', 'book', 'e');
SELECT is(outcome, 'duplicate', 'and knows them') FROM idem_accept('empty', 'book', 'e');

-- One that was made by hand, as a restore makes it

CREATE TABLE "By Hand" OF idem_event
    (key WITH OPTIONS NOT NULL, state WITH OPTIONS NOT NULL, attempt WITH OPTIONS NOT NULL,
     first_seen_at WITH OPTIONS NOT NULL, expires_at WITH OPTIONS NOT NULL, failures WITH OPTIONS NOT NULL,
     slot WITH OPTIONS NOT NULL, handler WITH OPTIONS NOT NULL, event_id WITH OPTIONS NOT NULL)
    PARTITION BY LIST (slot);
CREATE TABLE "Slot B" PARTITION OF "By Hand" (PRIMARY KEY (key)) FOR VALUES IN (1);
CREATE TABLE "Slot A" PARTITION OF "By Hand" (PRIMARY KEY (key)) FOR VALUES IN (0);
SELECT lives_ok($$SELECT idem_attach_table('"By Hand"')$$, 'one with names of its own');
SELECT is(outcome, 'acquired', 'takes events') FROM idem_accept('"By Hand"', 'book', 'e');
SELECT is(outcome, 'duplicate', 'and knows them') FROM idem_accept('"By Hand"', 'book', 'e');

-- Refused

SELECT pg_temp.lose_registration() \g /dev/null
SELECT throws_ok($$SELECT idem_attach_table(NULL)$$, '22004', 'dedup must not be null');
SELECT throws_ok($$SELECT idem_attach_table('inbox', hot_window => NULL)$$, '22004', 'hot_window must not be null');
SELECT throws_ok($$SELECT idem_attach_table('inbox', cold_window => NULL)$$, '22004', 'cold_window must not be null');
SELECT throws_ok($$SELECT idem_attach_table('inbox', mode => NULL)$$, '22004', 'mode must not be null');
SELECT throws_ok($$SELECT idem_attach_table('inbox', hot_window => '1 month')$$, '22023',
    'hot_window has no fixed length');
SELECT throws_ok($$SELECT idem_attach_table('inbox', cold_window => '0')$$, '22023', 'cold_window must be positive');
SELECT throws_ok($$SELECT idem_attach_table('inbox', '1 hour', '1 hour')$$, '22023',
    'hot_window must be shorter than cold_window');
SELECT throws_ok($$SELECT idem_attach_table('inbox', mode => 'leases')$$, '22023', 'invalid mode "leases"');
SELECT throws_ok($$SELECT idem_attach_table('pg_class')$$, '42809', '"pg_class" is not a dedup table');
SELECT throws_ok($$SELECT idem_attach_table('inbox_g0')$$, '42809', '"inbox_g0" is not a dedup table');
SELECT throws_ok($$SELECT idem_attach_table(0::oid)$$, '42P01', 'relation with OID 0 does not exist');
CREATE TEMP TABLE passing OF idem_event PARTITION BY LIST (slot);
SELECT throws_ok($$SELECT idem_attach_table('passing')$$, '42809', '"passing" is not a dedup table',
    'a temporary table');
CREATE TABLE by_state OF idem_event PARTITION BY LIST (state);
SELECT throws_ok($$SELECT idem_attach_table('by_state')$$, '42809', 'dedup table "by_state" is not in order',
    'partitioned by another column');
CREATE TABLE by_range OF idem_event PARTITION BY RANGE (slot);
SELECT throws_ok($$SELECT idem_attach_table('by_range')$$, '42809', 'dedup table "by_range" is not in order',
    'partitioned by range');
CREATE TABLE by_expression OF idem_event PARTITION BY LIST ((slot + 0));
SELECT throws_ok($$SELECT idem_attach_table('by_expression')$$, '42809', 'dedup table "by_expression" is not in order',
    'partitioned by an expression');
CREATE TABLE childless OF idem_event PARTITION BY LIST (slot);
SELECT throws_ok($$SELECT idem_attach_table('childless')$$, '42809', 'dedup table "childless" is not in order',
    'without partitions');
DROP TABLE inbox_g2;
SELECT throws_ok($$SELECT idem_attach_table('inbox')$$, '42809', 'dedup table "inbox" is not in order',
    'with a partition missing');
SELECT is_empty('SELECT dedup FROM idem_registry UNION ALL SELECT dedup FROM idem_control',
    'of what was refused nothing is registered');

SELECT * FROM finish();
ROLLBACK;
