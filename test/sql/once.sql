-- idem_once: acquires an event, runs an action, and settles. What the action did is undone if it fails, and its error is
-- remembered; what is nobody's fault who handles the event goes up.
CREATE SCHEMA once;
SET search_path = once, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox');
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_set_policy('inbox', 'twice', max_attempts => 2);
    PERFORM idem_set_policy('outbox', 'open', on_unavailable => 'allow');
    PERFORM idem_accept('inbox', 'book', 'done', result => '{"balance": 90}', fingerprint => idem_fingerprint('A'::text));
    PERFORM idem_receive('inbox', 'book', 'received', payload => '{"cents": 7}');
    PERFORM idem_acquire('outbox', 'send', e, payload => '{"cents": 8}') FROM unnest(ARRAY['running', 'run out']) e;
    UPDATE outbox SET claimable_at = now() WHERE event_id = 'run out';
END $$;
CREATE TABLE wallet (balance int NOT NULL CHECK (balance >= 0));
INSERT INTO wallet VALUES (100);
CREATE SEQUENCE calls;

CREATE FUNCTION charge(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    rest int;
BEGIN
    PERFORM nextval('calls');
    UPDATE wallet SET balance = balance - (payload->>'cents')::int RETURNING balance INTO rest;
    RETURN jsonb_build_object('balance', rest);
END $$;
CREATE FUNCTION refuse(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    UPDATE wallet SET balance = 0;
    PERFORM idem_acquire('inbox', 'book', 'another');
    PERFORM idem_accept('inbox', 'book', 'a third');
    PERFORM idem_commit('inbox', 'book', 'claimed before');
    PERFORM set_config('idem.max_result_size', '7kB', true);
    RAISE EXCEPTION USING errcode = payload->>'state', message = payload->>'message',
        detail = coalesce(payload->>'detail', 'none');
END $$;
CREATE FUNCTION nothing(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
CREATE FUNCTION strict(payload jsonb) RETURNS jsonb LANGUAGE sql STRICT AS 'SELECT payload';
CREATE FUNCTION echo(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$SELECT coalesce(payload, '"none"')$$;
CREATE FUNCTION forever(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(3600);
    RETURN NULL;
END $$;
-- The SQLSTATE of a call.
CREATE FUNCTION state_of(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE call;
    RETURN 'none';
EXCEPTION WHEN query_canceled OR assert_failure OR OTHERS THEN
    RETURN sqlstate;
END $$;

SELECT plan(87);
BEGIN;

-- It succeeds

SELECT is(ROW(acquired, outcome, attempt, retry_after, result, error)::text, '(t,acquired,1,,"{""balance"": 90}",)',
    'its result is returned')
FROM idem_once('inbox', 'book', 'e', 'charge(jsonb)', '{"cents": 10}');
SELECT is(balance, 90, 'and it has done its work') FROM wallet;
SELECT is(ROW(state, attempt, failures, result, error, payload)::text, '(done,1,0,"{""balance"": 90}",,)',
    'the event is done, with its result and without its payload') FROM inbox WHERE event_id = 'e';
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(f,duplicate,1,"{""balance"": 90}")', 'again: a duplicate')
FROM idem_once('inbox', 'book', 'e', 'charge(jsonb)', '{"cents": 10}');
SELECT is(ROW(outcome, result)::text, '(duplicate,"{""balance"": 90}")', 'to other functions too')
FROM idem_acquire('inbox', 'book', 'e');
SELECT is(outcome, 'acquired', 'another batch is another event')
FROM idem_once('inbox', 'book', 'e', 'charge(jsonb)', '{"cents": 10}', batch => 'may');
SELECT is(ROW(acquired, outcome, result)::text, '(f,duplicate,"{""balance"": 90}")', 'what was done before is not done')
FROM idem_once('inbox', 'book', 'done', 'charge(jsonb)', '{"cents": 10}', fingerprint => idem_fingerprint('A'::text));
SELECT is(outcome, 'conflict', 'nor where the fingerprint differs')
FROM idem_once('inbox', 'book', 'done', 'charge(jsonb)', '{"cents": 10}', fingerprint => idem_fingerprint('B'::text));
SELECT is(outcome, 'stale', 'nor what is too old')
FROM idem_once('inbox', 'book', 'old', 'charge(jsonb)', '{"cents": 10}', occurred_at => '2000-01-01');
SELECT is(ROW(outcome, retry_after > 840)::text, '(busy,t)', 'nor what somebody else does')
FROM idem_once('outbox', 'send', 'running', 'charge(jsonb)', '{"cents": 10}');
SELECT is(ROW(balance, last_value)::text, '(80,2)', 'so it has run twice') FROM wallet, calls;
SELECT is(result, '{"balance": 73}', 'the payload may be the one that was received')
FROM idem_once('inbox', 'book', 'received', 'charge(jsonb)');
SELECT is(result, '{"balance": 70}', 'or another') FROM idem_once('inbox', 'book', 'other', 'charge(jsonb)', '{"cents": 3}');
SELECT is(ROW(acquired, outcome, result)::text, '(t,acquired,)', 'no result is a result')
FROM idem_once('inbox', 'book', 'nothing', 'nothing(jsonb)');
SELECT is(ROW(state, result)::text, '(done,)', 'the event is done') FROM inbox WHERE event_id = 'nothing';
SELECT is(result, '"none"', 'a payload may be null') FROM idem_once('inbox', 'book', 'no payload', 'echo(jsonb)');

-- As a lease

SELECT idem_acquire('inbox', 'book', 'claimed before') \g /dev/null
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(t,acquired,1,"{""balance"": 69}")', 'a lease')
FROM idem_once('outbox', 'send', 'e', 'charge(jsonb)', '{"cents": 1}');
SELECT is(ROW(state, attempt, result, payload, claimable_at)::text, '(done,1,"{""balance"": 69}",,)', 'is done')
FROM outbox WHERE event_id = 'e';
SELECT is(ROW(acquired, outcome, attempt, result)::text, '(t,acquired,2,"{""balance"": 61}")',
    'one that ran out is taken over, with its payload')
FROM idem_once('outbox', 'send', 'run out', 'charge(jsonb)');
SELECT is(ROW(acquired, outcome, error LIKE 'P0001: no%')::text, '(f,backoff,t)', 'one whose action fails')
FROM idem_once('outbox', 'send', 'fails', 'refuse(jsonb)', '{"state": "P0001", "message": "no"}');
SELECT is(ROW(state, attempt, failures, error LIKE 'P0001: no%', payload)::text,
    '(failed,1,1,t,"{""state"": ""P0001"", ""message"": ""no""}")', 'has failed')
FROM outbox WHERE event_id = 'fails';

-- It fails

SELECT is(ROW(acquired, outcome, attempt, retry_after, result)::text, '(f,backoff,1,0,)', 'it fails')
FROM idem_once('inbox', 'book', 'fails', 'refuse(jsonb)', '{"state": "22012", "message": "no", "detail": "Really."}');
SELECT is(ROW(state, attempt, failures, result, payload)::text,
    '(failed,1,1,,"{""state"": ""22012"", ""detail"": ""Really."", ""message"": ""no""}")',
    'the event waits for a retry, with its payload')
FROM inbox WHERE event_id = 'fails';
SELECT is(error, E'22012: no\nDETAIL: Really.\nCONTEXT: PL/pgSQL function refuse(jsonb) line 8 at RAISE',
    'SQLSTATE, message, detail and context are remembered')
FROM inbox WHERE event_id = 'fails';
SELECT is(error, (SELECT error FROM inbox WHERE event_id = 'fails'), 'and returned')
FROM idem_once('inbox', 'book', 'fails', 'refuse(jsonb)', '{"state": "22012", "message": "no", "detail": "Really."}');
SELECT is(balance, 61, 'what it wrote is undone') FROM wallet;
SELECT is_empty($$SELECT FROM inbox WHERE event_id IN ('another', 'a third')$$, 'its claims too');
SELECT is(outcome, 'acquired', 'which are free') FROM idem_accept('inbox', 'book', 'another');
SELECT is(outcome, 'busy', 'what it settled is open again') FROM idem_acquire('inbox', 'book', 'claimed before');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'claimed before')$$, 'and can be settled');
SELECT is(current_setting('idem.max_result_size'), '1MB', 'and what it set');
SELECT is(ROW(attempt, failures)::text, '(2,2)', 'the second failure counts') FROM inbox WHERE event_id = 'fails';
SELECT is(ROW(acquired, attempt, result)::text, '(t,3,"{""balance"": 60}")', 'a retry may succeed')
FROM idem_once('inbox', 'book', 'fails', 'charge(jsonb)', '{"cents": 1}');
SELECT is(ROW(state, failures, error, payload)::text, '(done,2,,)', 'the event is done') FROM inbox WHERE event_id = 'fails';
SELECT is(error, E'23514: new row for relation "wallet" violates check constraint "wallet_balance_check"\n'
    'DETAIL: Failing row contains (-40).\nCONTEXT: SQL statement "UPDATE wallet SET balance = balance - '
    '(payload->>''cents'')::int RETURNING balance"\nPL/pgSQL function charge(jsonb) line 6 at SQL statement',
    'an error of the server')
FROM idem_once('inbox', 'book', 'too much', 'charge(jsonb)', '{"cents": 100}');
SELECT is(outcome, 'backoff', 'an event that may fail twice, once')
FROM idem_once('inbox', 'twice', 'e', 'refuse(jsonb)', '{"state": "P0001", "message": "no"}');
SELECT is(ROW(outcome, retry_after, error LIKE 'P0001: never%')::text, '(dead,,t)', 'and twice: it is given up')
FROM idem_once('inbox', 'twice', 'e', 'refuse(jsonb)', '{"state": "P0001", "message": "never"}');
SELECT is(ROW(acquired, outcome, error LIKE 'P0001: never%')::text, '(f,dead,t)', 'and not run again')
FROM idem_once('inbox', 'twice', 'e', 'charge(jsonb)', '{"cents": 1}');
SELECT is(balance, 60, 'indeed not') FROM wallet;

-- A result that is too large, a null payload

SET LOCAL idem.max_result_size = '1kB';
SELECT is(ROW(acquired, outcome, split_part(error, E'\n', 1))::text, '(f,backoff,"22023: result is too large")',
    'a result that is too large')
FROM idem_once('inbox', 'book', 'large', 'echo(jsonb)', to_jsonb(repeat('x', 2000)));
RESET idem.max_result_size;
SELECT is(ROW(acquired, outcome, error)::text,
    E'(f,backoff,"22004: payload must not be null\nDETAIL: Function ""strict"" is strict.")',
    'a strict function is not passed over in silence where there is no payload')
FROM idem_once('inbox', 'book', 'strict', 'strict(jsonb)');
SELECT is(ROW(acquired, result)::text, '(t,1)', 'where there is one, it is called')
FROM idem_once('inbox', 'book', 'strict', 'strict(jsonb)', '1');

-- A long message

SELECT ok(octet_length(error) BETWEEN 65533 AND 65536 AND error LIKE 'P0001: €€€%€€€',
    'a long message is cut between two characters')
FROM idem_once('inbox', 'book', 'long', 'refuse(jsonb)',
    jsonb_build_object('state', 'P0001', 'message', repeat('€', 40000)));
SELECT ok(octet_length(error) BETWEEN 65533 AND 65536 AND error LIKE 'P0001: x€€€%€€€', 'wherever they are')
FROM idem_once('inbox', 'book', 'long 1', 'refuse(jsonb)',
    jsonb_build_object('state', 'P0001', 'message', 'x' || repeat('€', 40000)));
SELECT ok(octet_length(error) BETWEEN 65533 AND 65536 AND error LIKE 'P0001: xx€€€%€€€', 'indeed')
FROM idem_once('inbox', 'book', 'long 2', 'refuse(jsonb)',
    jsonb_build_object('state', 'P0001', 'message', 'xx' || repeat('€', 40000)));

-- What goes up

SELECT is(state_of(format($$SELECT idem_once('inbox', 'book', 'up', 'refuse(jsonb)',
                                    '{"state": "%s", "message": "no"}')$$, state)), state, name || ' goes up')
FROM (VALUES ('57014', 'a cancelled statement'), ('40001', 'a serialization failure'), ('40P01', 'a deadlock'),
             ('40000', 'a rollback'), ('57P01', 'a shutdown'), ('57P05', 'an idle session''s end')) v (state, name);
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'up'$$, 'nothing of it is remembered');
SELECT is(state_of(format($$SELECT idem_once('inbox', 'book', %L, 'refuse(jsonb)',
                                    '{"state": "%s", "message": "no"}')$$, state, state)), 'none', name || ' does not')
FROM (VALUES ('55P03', 'a lock that can''t be had'), ('53200', 'a lack of memory'), ('P0004', 'a failed assertion'),
             ('ID001', 'a lost lease'), ('XX000', 'an internal error')) v (state, name);

-- Actions that use idem themselves

CREATE FUNCTION nested(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    inner_claim idem_claim;
BEGIN
    SELECT * INTO inner_claim
    FROM idem_once('inbox', 'book', payload->>'event', (payload->>'action')::regprocedure, payload->'payload');
    IF payload ? 'fails' THEN RAISE EXCEPTION 'outer'; END IF;
    RETURN to_jsonb(inner_claim.outcome);
END $$;
SELECT is(result, '"busy"', 'the same event within its action is busy')
FROM idem_once('inbox', 'book', 'outer', 'nested(jsonb)', '{"event": "outer", "action": "charge(jsonb)"}');
SELECT is(result, '"acquired"', 'another is done')
FROM idem_once('inbox', 'book', 'outer 2', 'nested(jsonb)',
    '{"event": "inner 2", "action": "charge(jsonb)", "payload": {"cents": 2}}');
SELECT is(result, '"backoff"', 'or fails alone')
FROM idem_once('inbox', 'book', 'outer 3', 'nested(jsonb)',
    '{"event": "inner 3", "action": "charge(jsonb)", "payload": {"cents": 2000}}');
SELECT is(outcome, 'backoff', 'if the outer one fails,')
FROM idem_once('inbox', 'book', 'outer 4', 'nested(jsonb)',
    '{"event": "inner 4", "action": "charge(jsonb)", "payload": {"cents": 2}, "fails": true}');
SELECT results_eq($$SELECT ROW(event_id, state)::text FROM inbox WHERE event_id ~ '^(inner|outer)' ORDER BY 1$$,
    ARRAY['("inner 2",done)', '("inner 3",failed)', '("outer 2",done)', '("outer 3",done)', '("outer 4",failed)',
          '(outer,done)'], 'the inner one is undone with it');
SELECT is(balance, 58, 'its work too') FROM wallet;

CREATE FUNCTION settles(payload jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF payload ? 'error' THEN
        PERFORM idem_release('inbox', 'book', payload->>'event', error => payload->>'error');
    ELSE
        PERFORM idem_commit('inbox', 'book', payload->>'event', result => payload->'stored');
    END IF;
    RETURN payload->'returned';
END $$;
SELECT is(ROW(acquired, result)::text, '(t,1)', 'an action that settles its event itself, with the result it returns')
FROM idem_once('inbox', 'book', 's', 'settles(jsonb)', '{"event": "s", "stored": 1, "returned": 1}');
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 's2', 'settles(jsonb)',
                                    '{"event": "s2", "stored": 1, "returned": 2}')$$,
    '22023', 'event "s2" of handler "book" was committed with another result', 'with another: an error');
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 's3', 'settles(jsonb)', '{"event": "s3", "error": "no"}')$$,
    'ID002', 'no such claim on event "s3" of handler "book"', 'or as failed: an error');

-- What is no action

CREATE FUNCTION two(a jsonb, b jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT a';
CREATE FUNCTION of_text(a text) RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb';
CREATE FUNCTION to_text(a jsonb) RETURNS text LANGUAGE sql AS 'SELECT NULL';
CREATE FUNCTION many(a jsonb) RETURNS SETOF jsonb LANGUAGE sql AS 'SELECT a';
CREATE PROCEDURE proc(a jsonb) LANGUAGE sql AS 'SELECT 1';
CREATE AGGREGATE agg(jsonb) (sfunc = two, stype = jsonb);
SELECT throws_ok(format($$SELECT idem_once('inbox', 'book', 'none', %L, '1')$$, action), '22023',
    format('function "%s" is no action', split_part(action, '(', 1)), action)
FROM unnest(ARRAY['two(jsonb,jsonb)', 'of_text(text)', 'to_text(jsonb)', 'many(jsonb)', 'proc(jsonb)', 'agg(jsonb)']) action;
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 'none', 4294967::regprocedure)$$, '42883',
    'function with OID 4294967 does not exist', 'what is not there');
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 'none', NULL)$$, '22004', 'action must not be null', 'null');
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 'none', 'charge(jsonb)', wait => '-1 s')$$, '22023',
    'wait must be positive', 'a negative wait');

-- Who may

CREATE ROLE regress_idem_once;
GRANT USAGE ON SCHEMA once TO regress_idem_once;
GRANT SELECT, INSERT, UPDATE ON inbox TO regress_idem_once;
GRANT USAGE ON calls TO regress_idem_once;
CREATE FUNCTION definer(a jsonb) RETURNS jsonb LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    UPDATE wallet SET balance = balance - 8;
    RETURN to_jsonb(current_user = session_user);
END $$;
REVOKE EXECUTE ON FUNCTION echo FROM PUBLIC;
SET LOCAL ROLE regress_idem_once;
SELECT throws_ok($$SELECT idem_once('inbox', 'book', 'none', 'echo(jsonb)')$$, '42501',
    'permission denied for function echo', 'EXECUTE on the action is needed');
SELECT is(split_part(error, E'\n', 1), '42501: permission denied for table wallet', 'the action runs as the caller')
FROM idem_once('inbox', 'book', 'invoker', 'charge(jsonb)', '{"cents": 1}');
SELECT is(result, 'true', 'unless it is SECURITY DEFINER')
FROM idem_once('inbox', 'book', 'definer', 'definer(jsonb)');
SELECT is(current_user::text, 'regress_idem_once', 'the caller remains who it was');
RESET ROLE;
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'none'$$, 'where it was refused, nothing is written');
SELECT is(balance, 50, 'all the work that was done') FROM wallet;
SELECT is_empty($$SELECT FROM pg_locks WHERE relation = idem_gate_relation() AND pid = pg_backend_pid()$$,
    'the gate is not held');
ROLLBACK;

-- A statement that takes too long is the caller's affair; where the store can't be written, nothing remembers an error

SET statement_timeout = '300ms';
SELECT is(state_of($$SELECT idem_once('inbox', 'book', 'forever', 'forever(jsonb)')$$), '57014',
    'a statement that is cancelled by its timeout');
RESET statement_timeout;
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'forever'$$, 'leaves nothing behind');
BEGIN READ ONLY;
SET LOCAL client_min_messages = error;
SELECT is(ROW(acquired, outcome, result)::text, '(t,bypassed,1)', 'where the policy allows it, an unprotected action runs')
FROM idem_once('outbox', 'open', 'e', 'echo(jsonb)', '1');
SELECT is(state_of($$SELECT idem_once('outbox', 'open', 'e', 'refuse(jsonb)', '{"state": "P0001", "message": "no"}')$$),
    '25006', 'and its error goes up');
SELECT is(state_of($$SELECT idem_once('outbox', 'send', 'e 2', 'echo(jsonb)', '1')$$), '25006', 'else it does not run');
ROLLBACK;

SET client_min_messages = warning;
DROP SCHEMA once CASCADE;
