-- The outcome stale: the event is older than what is remembered, and no row is found, so nobody can tell whether it was
-- settled. How old is too old: the cold window less a margin for the sender's clock, an hour or a tenth of the window.
CREATE SCHEMA stale;
SET search_path = stale, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('brief', '1 minute', '1000 seconds');
    PERFORM idem_accept('inbox', 'book', e, result => '1') FROM unnest(ARRAY['done', 'expired']) e;
    PERFORM idem_release('inbox', 'book', 'failed', error => 'no');
    UPDATE inbox SET expires_at = now() WHERE event_id = 'expired';
END $$;

BEGIN;
SELECT plan(20);

SELECT is(ROW(acquired, outcome, attempt, first_seen_at, retry_after, result, error)::text, '(f,stale,,,,,)',
    'older than the cold window: stale')
FROM idem_acquire('inbox', 'book', 'old', occurred_at => clock_timestamp() - interval '721 hours');
SELECT is(outcome, 'stale', 'to idem_accept too')
FROM idem_accept('inbox', 'book', 'old', occurred_at => clock_timestamp() - interval '721 hours');
SELECT is(outcome, 'stale', 'to who would wait, at once')
FROM idem_acquire('inbox', 'book', 'old', occurred_at => clock_timestamp() - interval '721 hours', wait => '1000 days');
SELECT is(outcome, 'stale', 'within an hour of the window''s end: stale')
FROM idem_acquire('inbox', 'book', 'old', occurred_at => clock_timestamp() - interval '719 hours 1 second');
SELECT is(outcome, 'stale', 'in a short window, within a tenth of it: stale')
FROM idem_acquire('brief', 'book', 'old', occurred_at => clock_timestamp() - interval '901 seconds');
SELECT is(outcome, 'stale', 'endlessly old: stale')
FROM idem_acquire('inbox', 'book', 'old', occurred_at => '-infinity');
SELECT is_empty($$SELECT event_id FROM inbox WHERE event_id = 'old' UNION ALL SELECT event_id FROM brief$$,
    'nothing is written');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'old')$$, 'ID002',
    'no such claim on event "old" of handler "book"', 'nor claimed');

SELECT is(outcome, 'acquired', 'a minute younger: acquired')
FROM idem_acquire('inbox', 'book', 'young', occurred_at => clock_timestamp() - interval '718 hours 59 minutes');
SELECT is(outcome, 'acquired', 'in a short window too')
FROM idem_acquire('brief', 'book', 'young', occurred_at => clock_timestamp() - interval '840 seconds');
SELECT is(outcome, 'acquired', 'just now') FROM idem_acquire('inbox', 'book', 'now', occurred_at => clock_timestamp());
SELECT is(outcome, 'acquired', 'by a clock that is ahead')
FROM idem_acquire('inbox', 'book', 'future', occurred_at => clock_timestamp() + interval '1 year');
SELECT is(outcome, 'acquired', 'in the endless future')
FROM idem_acquire('inbox', 'book', 'infinity', occurred_at => 'infinity');
SELECT is(outcome, 'acquired', 'unknown') FROM idem_acquire('inbox', 'book', 'unknown', occurred_at => NULL);

SELECT is(ROW(outcome, result)::text, '(duplicate,1)', 'where there is a row, it decides: duplicate')
FROM idem_acquire('inbox', 'book', 'done', occurred_at => '2000-01-01');
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'or acquired, where it waits for a retry')
FROM idem_acquire('inbox', 'book', 'failed', occurred_at => '2000-01-01');
SELECT is(outcome, 'busy', 'or busy, where it is open')
FROM idem_acquire('inbox', 'book', 'failed', occurred_at => '2000-01-01');

SELECT is(ROW(acquired, outcome)::text, '(f,stale)', 'a row that expired says no more than none')
FROM idem_acquire('inbox', 'book', 'expired', occurred_at => '2000-01-01');
SELECT is(result, '1', 'and is not overwritten') FROM inbox WHERE event_id = 'expired';
SELECT is(ROW(acquired, outcome, attempt)::text, '(t,acquired,2)', 'unless the event is younger')
FROM idem_acquire('inbox', 'book', 'expired', occurred_at => clock_timestamp() - interval '1 day');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA stale CASCADE;
