-- Without preloading nothing is counted, and nothing fails: the views have no rows, nothing is advised. What is not settled
-- is read from the tables, so it is shown all the same, to whom it concerns.
BEGIN;
SELECT plan(13);

SELECT idem_create_table('inbox');
SELECT idem_create_table('outbox', '1 hour', mode => 'lease');
SELECT idem_set_policy('outbox', max_attempts => 1);
SELECT idem_accept('inbox', 'book', 'a');

SELECT is_empty('SELECT * FROM idem_stat', 'no numbers');
SELECT lives_ok('SELECT idem_stat_reset()', 'nothing to reset');
SELECT lives_ok($$SELECT idem_stat_reset('inbox')$$, 'nor of a table');
SELECT results_eq($$SELECT of_handler, events, redelivered, advised_cold_window, why FROM idem_window_advice('inbox')$$,
    $$VALUES (NULL::text, 0::bigint, 0::bigint, NULL::interval,
              'hot_window: not enough seen yet, 0 of 100 settled claims. cold_window: not enough seen yet, 0 of 100 redelivered events.')$$,
    'nothing is advised');
SELECT throws_ok($$SELECT * FROM idem_window_advice('inbox', 'book')$$, '42704',
    'nothing is known of handler "book" of dedup table "inbox"', 'nothing is known of any handler');
SELECT throws_ok($$SELECT * FROM idem_window_advice('pg_class')$$, '42809', '"pg_class" is not a dedup table', 'no dedup table');
SELECT throws_ok($$SELECT idem_stat_reset('pg_class')$$, '42809', '"pg_class" is not a dedup table', 'nor to be reset');
SELECT throws_ok($$SELECT * FROM idem_window_advice(NULL)$$, '22004', 'dedup must not be null', 'null');
SELECT throws_ok($$SELECT * FROM idem_window_advice('inbox', '')$$, '22023', 'handler must not be empty', 'empty handler');

SELECT is_empty('SELECT * FROM idem_unsettled', 'all is settled');
SELECT idem_acquire('outbox', 'send', 'running');
SELECT idem_receive('outbox', 'send', 'received'), idem_receive('outbox', 'push', 'received');
SELECT idem_acquire('outbox', 'send', 'dead'), idem_release('outbox', 'send', 'dead', attempt => 1, error => 'x');
SELECT results_eq($$SELECT dedup::text, handler, state, events, next_due = 'infinity' FROM idem_unsettled$$,
    $$VALUES ('outbox', 'push', 'pending'::idem_state, 1::bigint, false), ('outbox', 'send', 'pending', 1, false),
             ('outbox', 'send', 'processing', 1, false), ('outbox', 'send', 'dead', 1, true)$$,
    'what is not settled, by handler and state');

CREATE ROLE support;
CREATE ROLE reader;
GRANT SELECT ON outbox TO reader;
SET LOCAL ROLE support;
SELECT is_empty('SELECT * FROM idem_unsettled', 'whom it does not concern sees nothing');
SET LOCAL ROLE reader;
SELECT is((SELECT sum(events) FROM idem_unsettled)::int, 4, 'who may read the table sees it');
RESET ROLE;

SELECT * FROM finish();
ROLLBACK;
