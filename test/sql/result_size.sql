-- idem.max_result_size, and results and payloads of every size up to it.
BEGIN;
SELECT plan(39);

SELECT idem_create_table('inbox') \g /dev/null
SELECT idem_create_table('outbox', mode => 'lease') \g /dev/null
-- A JSON text of as many bytes, as it is counted
CREATE FUNCTION pg_temp.json_of(bytes int) RETURNS jsonb LANGUAGE sql
    AS $$SELECT to_jsonb(repeat('x', bytes - pg_column_size(to_jsonb(repeat('x', 1000))) + 1000))$$;

SELECT is(current_setting('idem.max_result_size'), '1MB', 'by default a result has at most 1 MB');
SELECT is(pg_column_size(pg_temp.json_of(1048576)), 1048576, 'exactly one');

SELECT idem_acquire('inbox', 'book', 'committed') \g /dev/null
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'committed', result => pg_temp.json_of(1048577))$$, '22023',
    'result is too large', 'idem_commit: one byte more is refused');
SELECT is(outcome, 'busy', 'and settles nothing') FROM idem_acquire('inbox', 'book', 'committed');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'committed', result => pg_temp.json_of(1048576))$$,
    'idem_commit: that is allowed');
SELECT ok(result = pg_temp.json_of(1048576), 'a duplicate is told all of it')
FROM idem_acquire('inbox', 'book', 'committed');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'committed', result => pg_temp.json_of(1048576))$$,
    'it is the same result');
SELECT throws_ok($$SELECT idem_commit('inbox', 'book', 'committed', result => pg_temp.json_of(1048575))$$, '22023',
    'event "committed" of handler "book" was committed with another result', 'and this is another');
SELECT ok(result = pg_temp.json_of(1048576), 'a look shows all of it') FROM idem_lookup('inbox', 'book', 'committed');

SELECT throws_ok($$SELECT idem_accept('inbox', 'book', 'accepted', result => pg_temp.json_of(1048577))$$, '22023',
    'result is too large', 'idem_accept: one byte more is refused');
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'accepted'$$, 'nothing is written');
SELECT is(outcome, 'acquired', 'idem_accept: that is allowed')
FROM idem_accept('inbox', 'book', 'accepted', result => pg_temp.json_of(1048576));
SELECT ok(result = pg_temp.json_of(1048576), 'a duplicate is told all of it')
FROM idem_accept('inbox', 'book', 'accepted');

-- Set by whoever calls

SET LOCAL idem.max_result_size = '2kB';
SELECT is(outcome, 'acquired', 'smaller: 2 kB are allowed')
FROM idem_accept('inbox', 'book', 'small', result => pg_temp.json_of(2048));
SELECT throws_ok($$SELECT idem_accept('inbox', 'book', 'too large', result => pg_temp.json_of(2049))$$, '22023',
    'result is too large', 'smaller: one byte more is refused');
SELECT ok(result = pg_temp.json_of(1048576), 'what is stored is told all the same')
FROM idem_acquire('inbox', 'book', 'committed');
SET LOCAL idem.max_result_size = 0;
SELECT throws_ok($$SELECT idem_accept('inbox', 'book', 'too large', result => 'null')$$, '22023', 'result is too large',
    'zero: no result at all');
SELECT is(outcome, 'acquired', 'zero: without one all goes well') FROM idem_accept('inbox', 'book', 'none');
SET LOCAL idem.max_result_size = '3MB';
SELECT is(outcome, 'acquired', 'larger: 3 MB are allowed')
FROM idem_accept('inbox', 'book', 'large', result => pg_temp.json_of(3 * 1048576));
SELECT ok(result = pg_temp.json_of(3 * 1048576), 'a duplicate is told all of it')
FROM idem_accept('inbox', 'book', 'large');
SELECT throws_ok('SET LOCAL idem.max_result_size = -1', '22023', NULL, 'not less than nothing');
SELECT throws_ok($$SET LOCAL idem.max_result_size = '2GB'$$, '22023', NULL, 'not more than the server stores');
SELECT throws_ok('SET LOCAL idem.max_result_sice = 1', '42602',
    'invalid configuration parameter name "idem.max_result_sice"', 'a setting that idem does not have is an error');
RESET idem.max_result_size;

-- Values which the server keeps out of line or compressed, on the way in and in further versions of the row

CREATE TEMP TABLE request (plain jsonb, compressed jsonb);
ALTER TABLE request ALTER plain SET STORAGE EXTERNAL;
INSERT INTO request
    SELECT j, j FROM (SELECT jsonb_agg(md5(n::text)) || to_jsonb(repeat('y', 20000))
                      FROM generate_series(1, 300) n) AS big (j);
SELECT is(outcome, 'acquired', 'a payload out of line')
FROM request, idem_acquire('outbox', 'send', 'toasted', payload => plain);
SELECT ok(payload = plain, 'is stored') FROM outbox, request WHERE event_id = 'toasted';
SELECT lives_ok($$SELECT idem_extend('outbox', 'send', 'toasted', attempt => 1)$$, 'the row is written again');
SELECT ok(payload = plain, 'with its payload') FROM outbox, request WHERE event_id = 'toasted';
SELECT is(outcome, 'backoff', 'and again')
FROM idem_release('outbox', 'send', 'toasted', error => repeat('long ', 10000), attempt => 1);
SELECT ok(payload = plain AND error = repeat('long ', 10000), 'with its payload, and a long error')
FROM outbox, request WHERE event_id = 'toasted';
SELECT is(ROW(acquired, attempt)::text, '(t,2)', 'and again') FROM idem_acquire('outbox', 'send', 'toasted');
SELECT ok(payload = plain AND error IS NULL, 'with its payload') FROM outbox, request WHERE event_id = 'toasted';
SELECT is(count(*), 1::bigint, 'settled with a compressed result')
FROM request, idem_commit('outbox', 'send', 'toasted', result => compressed, attempt => 2);
SELECT ok(o.result = compressed AND payload IS NULL, 'which is stored; the payload is dropped')
FROM outbox o, request WHERE event_id = 'toasted';
SELECT ok(c.result = compressed, 'and told') FROM request, idem_acquire('outbox', 'send', 'toasted') c;
SELECT is(outcome, 'acquired', 'transaction mode keeps a payload in memory')
FROM request, idem_acquire('inbox', 'book', 'toasted', payload => plain);
SELECT is(payload, NULL, 'and does not store it') FROM inbox WHERE event_id = 'toasted';
SELECT is(outcome, 'backoff', 'unless the claim fails') FROM idem_release('inbox', 'book', 'toasted', error => 'no');
SELECT ok(payload = plain, 'then all of it is there') FROM inbox, request WHERE event_id = 'toasted';
SELECT is(idem_fingerprint(plain, '300'), idem_fingerprint(to_jsonb(ARRAY[repeat('y', 20000)]), '0'),
    'fingerprints come from such values, too')
FROM request;

SELECT * FROM finish();
ROLLBACK;
