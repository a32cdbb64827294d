-- idem_create_table: what it makes and registers.
BEGIN;
SELECT plan(39);

-- With defaults

SELECT is(idem_create_table('plain')::text, 'plain', 'the answer is the table');

SELECT is(relkind::text || relpersistence::text, 'pp', 'it is a permanent partitioned table')
FROM pg_class WHERE oid = 'plain'::regclass;
SELECT is(reloftype::regtype::text, 'idem_event', 'OF idem_event') FROM pg_class WHERE oid = 'plain'::regclass;
SELECT is(pg_get_partkeydef('plain'::regclass), 'LIST (slot)', 'partitioned by its slot');
SELECT is(relowner::regrole::name, current_user, 'it belongs to the caller')
FROM pg_class WHERE oid = 'plain'::regclass;
SELECT is_empty(
    $$SELECT * FROM pg_depend
      WHERE objid IN (SELECT relid FROM pg_partition_tree('plain')) AND refclassid = 'pg_extension'::regclass$$,
    'and not to the extension');

SELECT results_eq(
    $$SELECT c.oid::regclass::text, c.relkind, c.relpersistence, pg_get_expr(c.relpartbound, c.oid) COLLATE "default"
      FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent = 'plain'::regclass ORDER BY c.relname$$,
    $$SELECT 'plain_g' || n, 'r'::"char", 'p'::"char", format('FOR VALUES IN (''%s'')', n)
      FROM generate_series(0, 7) n$$,
    'by default it has eight partitions, one for each slot');

SELECT results_eq(
    $$SELECT indrelid::regclass::text, bool_or(indisprimary AND indisunique AND indimmediate AND indkey = (
                 SELECT attnum::text::int2vector FROM pg_attribute WHERE attrelid = indrelid AND attname = 'key')),
             count(*)
      FROM pg_index WHERE indrelid IN (SELECT relid FROM pg_partition_tree('plain')) GROUP BY 1 ORDER BY 1$$,
    $$SELECT 'plain_g' || n, true, 3::bigint FROM generate_series(0, 7) n$$,
    'each has a primary key on key, which can be its replica identity, and two indexes more');
SELECT is(pg_get_indexdef('plain_g3_claimable_at_idx'::regclass),
    'CREATE INDEX plain_g3_claimable_at_idx ON public.plain_g3 USING btree (claimable_at) '
    'WHERE (claimable_at IS NOT NULL)',
    'which are that of what is due');
SELECT is(pg_get_indexdef('plain_g3_handler_ordering_case_first_seen_at_key_idx'::regclass),
    'CREATE INDEX plain_g3_handler_ordering_case_first_seen_at_key_idx ON public.plain_g3 USING btree '
    '(handler, ordering, (
CASE
    WHEN (state = ''processing''::idem_state) THEN 1
    ELSE 0
END), first_seen_at, key) '
    'WHERE ((ordering IS NOT NULL) AND (claimable_at IS NOT NULL))',
    'and that of the order of ordering keys');

SELECT bag_eq(
    $$SELECT attname::text FROM pg_attribute WHERE attrelid = 'plain_g0'::regclass AND attnum > 0 AND attnotnull$$,
    $$VALUES ('key'), ('state'), ('attempt'), ('first_seen_at'), ('expires_at'), ('failures'), ('slot'), ('handler'),
             ('event_id')$$,
    'what every event has can''t be null');

SELECT is(ROW(mode, hot_window, cold_window, unresolved_window)::text, '(transaction,00:15:00,"30 days","365 days")',
    'its policy is registered')
FROM idem_registry WHERE dedup = 'plain'::regclass;
SELECT is(ROW(oldest_generation, current_generation)::text, '(0,0)', 'its ring is at its start')
FROM idem_control WHERE dedup = 'plain'::regclass;
SELECT ok(opened_at BETWEEN now() AND clock_timestamp(), 'opened just now')
FROM idem_generation WHERE dedup = 'plain'::regclass;
SELECT is(outcome, 'acquired', 'it takes events at once') FROM idem_accept('plain', 'book', 'e1');

-- Settings of its own

SELECT lives_ok($$SELECT idem_create_table('own', '90 seconds', '36 hours', 'lease', 3)$$, 'arguments by position');
SELECT is(ROW(mode, hot_window, cold_window)::text, '(lease,00:01:30,"1 day 12:00:00")',
    'windows are kept as days of 24 hours')
FROM idem_registry WHERE dedup = 'own'::regclass;
SELECT is(count(*), 3::bigint, 'as many partitions as asked') FROM pg_inherits WHERE inhparent = 'own'::regclass;
SELECT is(outcome, 'acquired', 'it takes events') FROM idem_acquire('own', 'send', 'e1');
SELECT is(state, 'processing', 'by its mode, a claim is a lease') FROM idem_lookup('own', 'send', 'e1');

SELECT lives_ok($$SELECT idem_create_table('shortest', '1 microsecond', '2 microseconds')$$, 'the shortest windows');
SELECT lives_ok($$SELECT idem_create_table('longest', '3659 days 23:59:59.999999', '3660 days')$$,
    'the longest windows');
SELECT is(ROW(hot_window, cold_window)::text, '("3659 days 23:59:59.999999","3660 days")',
    'are kept to the microsecond')
FROM idem_registry WHERE dedup = 'longest'::regclass;

SELECT lives_ok($$SELECT idem_create_table('mixed', '-1 day 24 hours 15 minutes', '1 day -1 hour')$$,
    'windows of mixed signs');
SELECT is(ROW(hot_window, cold_window)::text, '(00:15:00,23:00:00)', 'are what they sum up to')
FROM idem_registry WHERE dedup = 'mixed'::regclass;

SELECT lives_ok($$SELECT idem_create_table('fewest', generations => 2)$$, 'two generations');
SELECT is(count(*), 2::bigint, 'make two partitions') FROM pg_inherits WHERE inhparent = 'fewest'::regclass;
SELECT is(outcome, 'acquired', 'which take events') FROM idem_accept('fewest', 'book', 'e1');
SELECT lives_ok($$SELECT idem_create_table('most', generations => 64)$$, 'sixty-four generations');
SELECT is(count(*), 64::bigint, 'make sixty-four partitions') FROM pg_inherits WHERE inhparent = 'most'::regclass;
SELECT is(outcome, 'acquired', 'which take events') FROM idem_accept('most', 'book', 'e1');

-- Unlogged

SELECT lives_ok($$SELECT idem_create_table('forgetful', generations => 4, unlogged => true)$$, 'an unlogged table');
SELECT is(relpersistence, 'p', 'is permanent itself') FROM pg_class WHERE oid = 'forgetful'::regclass;
SELECT results_eq(
    $$SELECT relpersistence, count(*) FROM pg_class
      WHERE oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'forgetful'::regclass) GROUP BY 1$$,
    $$VALUES ('u'::"char", 4::bigint)$$,
    'and its partitions are unlogged');
SELECT is(outcome, 'acquired', 'they take events') FROM idem_accept('forgetful', 'book', 'e1');
SELECT is(outcome, 'duplicate', 'and remember them') FROM idem_accept('forgetful', 'book', 'e1');

-- Several

SELECT is(outcome, 'acquired', 'one table does not know another''s events') FROM idem_accept('own', 'book', 'e1');
SELECT set_eq(
    $$SELECT dedup::text FROM idem_registry JOIN pg_class c ON c.oid = dedup
      WHERE relnamespace = 'public'::regnamespace$$,
    $$VALUES ('plain'), ('own'), ('shortest'), ('longest'), ('mixed'), ('fewest'), ('most'), ('forgetful')$$,
    'all of them are registered');

SELECT set_eq($$SELECT attname, col_description(attrelid, attnum) FROM pg_attribute WHERE attrelid = 'plain'::regclass AND attnum > 0$$,
    $$SELECT attname, col_description(attrelid, attnum) FROM pg_attribute
      WHERE attrelid = (SELECT typrelid FROM pg_type WHERE oid = 'idem_event'::regtype)$$,
    'the columns'' comments are those of idem_event');

SELECT * FROM finish();
ROLLBACK;
