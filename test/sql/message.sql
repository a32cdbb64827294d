-- What errors say beside their SQLSTATE and message: the detail of what was found, and a hint of what to do.
CREATE SCHEMA message;
SET search_path = message, public;

DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_acquire('outbox', 'send "A"', e) FROM unnest(ARRAY['running', 'taken over', 'done']) e;
    PERFORM idem_commit('outbox', 'send "A"', 'done', result => '1', attempt => 1);
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'taken over';
END $$;
SELECT FROM idem_acquire('outbox', 'send "A"', 'taken over');

BEGIN;
SELECT plan(21);

CREATE FUNCTION pg_temp.said(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    message text;
    detail text;
    hint text;
BEGIN
    EXECUTE call;
    RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS
        state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN concat_ws(E'\n', state, message, detail, hint);
END $$;

SELECT is(pg_temp.said(call), said, split_part(said, E'\n', 1) || ': ' || split_part(said, E'\n', 2))
FROM (VALUES
    (1, $$SELECT idem_commit('outbox', 'send "A"', 'taken over', attempt => 1)$$, 'ID001
lease lost on event "taken over" of handler "send "A""
Attempt 1 has been taken over by attempt 2.
The work of this attempt must not take effect; roll it back.'),
    (2, $$SELECT idem_commit('outbox', 'send "A"', 'never', attempt => 1)$$, 'ID002
no such claim on event "never" of handler "send "A""
It was never acquired, was settled otherwise, was rolled back, or has been forgotten.
Look at idem_lookup.'),
    (3, $$SELECT idem_commit('outbox', 'send "A"', 'running')$$, '22004
attempt must not be null
Event "running" of handler "send "A"" was not acquired by this transaction.
Pass the attempt which idem_acquire returned.'),
    (4, $$SELECT idem_extend('outbox', 'send "A"', 'running')$$, '22004
attempt must not be null
Event "running" of handler "send "A"" was not acquired by this transaction.
Pass the attempt which idem_acquire returned.'),
    (5, $$SELECT idem_commit('outbox', 'send "A"', 'running', attempt => 0)$$, '22023
attempt must be positive, not 0

Pass the attempt which idem_acquire returned.'),
    (6, $$SELECT idem_acquire('outbox', repeat('h', 300), 'e')$$, '22023
handler is too long
It has 300 bytes; at most 255 are allowed.
'),
    (7, $$SELECT idem_acquire('outbox', 'h', repeat('e', 1025))$$, '22023
event_id is too long
It has 1025 bytes; at most 1024 are allowed.
'),
    (8, $$SELECT idem_resolve('outbox', 'h', 'e', note => repeat('e', 65537))$$, '22023
note is too long
It has 65537 bytes; at most 65536 are allowed.
'),
    (9, $$SELECT idem_acquire('outbox', 'h', 'e', hot_window => '1 month')$$, '22023
hot_window has no fixed length
Months and years differ in length.
Say it in days or hours; a day is 24 hours.'),
    (10, $$SELECT idem_acquire('outbox', 'h', 'e', wait => '3661 days')$$, '22023
wait is too long
At most 3660 days are allowed.
'),
    (11, $$SELECT idem_acquire('outbox', 'h', 'e', hot_window => '1 day')$$, '22023
hot_window is longer than that of dedup table "outbox"
A call may shorten the window of the policy, not lengthen it.
'),
    (12, $$SELECT idem_acquire('outbox', 'h', 'e', fingerprint => sha256('x'))$$, '22023
fingerprint is not one of idem''s

Make it with idem_fingerprint.'),
    (13, $$SELECT idem_accept('outbox', 'h', 'e', result => to_jsonb(repeat('x', 1048576)))$$, '22023
result is too large
It has 1048588 bytes; at most 1024 kB are allowed.
Store what a duplicate has to answer, not the whole outcome; or raise idem.max_result_size.'),
    (14, $$SELECT idem_acquire('pg_class', 'h', 'e')$$, '42809
"pg_class" is not a dedup table

Make one with idem_create_table.'),
    (15, $$SELECT idem_create_table('e', mode => 'leases')$$, '22023
invalid mode "leases"

The modes are "transaction" and "lease".'),
    (16, $$SELECT idem_create_table(repeat('n', 61))$$, format('42622
name "%1$s" is too long for a dedup table
Its partitions have names such as "%1$s_g7", and a name has at most 63 bytes.
', repeat('n', 61))),
    (17, $$SELECT idem_create_table('pg_temp.e')$$, '42P16
a dedup table cannot be temporary
It has to outlive the session to recognize a second delivery.
'),
    (18, $$CALL idem_rotate('outbox')$$, '25001
idem_rotate cannot run inside a transaction block
It commits after each step.
'),
    (19, $$DELETE FROM idem_registry; GRANT SELECT ON outbox TO pg_monitor; SELECT idem_acquire('outbox', 'h', 'e')$$,
        '42809
dedup table "outbox" is not registered

If it was restored without its registration, use idem_attach_table.')) AS error (n, call, said)
ORDER BY n;

-- Named by bytes as they are, whatever they are

SELECT is(
    split_part(pg_temp.said(format('SELECT idem_commit(''outbox'', %L, %L, attempt => 1)', handler, event)), E'\n', 2),
    format('no such claim on event "%s" of handler "%s"', event, handler), 'nothing in a name is taken for a format')
FROM (VALUES ('%s %d %n', repeat('é', 512))) AS odd (handler, event);

-- The library without the extension, as after DROP EXTENSION in another session

SET LOCAL client_min_messages = warning;
DROP EXTENSION idem CASCADE;
CREATE FUNCTION bare_lookup(regclass, text, text, text) RETURNS record LANGUAGE C AS '$libdir/idem', 'idem_lookup';
CREATE TABLE partitioned (slot int) PARTITION BY LIST (slot);
SELECT is(pg_temp.said($$SELECT bare_lookup('partitioned', 'h', 'e', NULL)$$), '42704
extension "idem" is not installed in this database

Use CREATE EXTENSION idem.', '42704: extension "idem" is not installed in this database');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA message CASCADE;
