-- What identifies an event: each line of docs/identity.md.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SELECT plan(24);
SELECT idem_create_table('inbox') \g /dev/null

-- Byte for byte

SELECT is(outcome, 'acquired', 'an event of its own: ' || quote_literal(id))
FROM unnest(ARRAY['evt_1', 'EVT_1', 'evt_1 ', ' evt_1', 'evt_01', 'é', normalize('é', NFD)]) id, idem_accept('inbox', 'book', id);
SELECT is(outcome, 'duplicate', 'the same bytes, the same event') FROM idem_accept('inbox', 'book', 'evt_1');

-- One id for several states, modes, senders

SELECT is(outcome, 'duplicate', 'the id alone takes the second state for the first') FROM
    (SELECT FROM idem_accept('inbox', 'naive', 'SM123') OFFSET 0) sent, LATERAL idem_accept('inbox', 'naive', 'SM123');
SELECT is(outcome, 'acquired', 'with the state, each is an event')
FROM unnest(ARRAY['sent', 'delivered']) state, idem_accept('inbox', 'sms-status', idem_business_key('SM123', state));
SELECT is(outcome, 'acquired', 'test and live mode, and two senders')
FROM (VALUES ('stripe', 'live'), ('stripe', 'test'), ('adyen', 'live')) s (sender, mode),
     idem_accept('inbox', 'book', idem_business_key(sender, mode, 'evt_1'));

-- Tenants

SELECT is(b.result, '{"paid": 10}', 'a key without its tenant answers B with what is A''s')
FROM idem_accept('inbox', 'unscoped', 'order-1', result => '{"paid": 10}') a, LATERAL idem_accept('inbox', 'unscoped', 'order-1') b
WHERE a.acquired;
SELECT is(ROW(outcome, result)::text, '(acquired,)', 'with the tenant, it doesn''t')
FROM unnest(ARRAY['tenant-a', 'tenant-b']) tenant, idem_accept('inbox', 'api', idem_business_key(tenant, 'order-1'));

-- Composed of fields

SELECT is(count(DISTINCT idem_business_key(ARRAY['sys', '1764000000', 'event', 'change_external_contact'],
                                           optional => ARRAY['add_external_contact', 'lisi', customer])), 2::bigint,
    'two customers in one second')
FROM unnest(ARRAY['wmA', 'wmB']) customer;
SELECT is(idem_business_key(ARRAY['sys', '1764000000', 'event', 'subscribe'], optional => ARRAY[NULL, nullif('', ''), 'lisi']),
    'sys:1764000000:event:subscribe:::lisi', 'what an event lacks');

-- Renamed

SELECT is(outcome, 'acquired', 'a renamed handler has forgotten') FROM idem_accept('inbox', 'book-2', 'evt_1');

-- What jsonb can't hold

SELECT throws_ok(format('SELECT %L::jsonb', '{"name": "a' || escape || 'b"}'), code, NULL, 'jsonb refuses ' || escape)
FROM (VALUES ('\u0000', '22P05'), ('\ud800', '22P02')) bad (escape, code);
SELECT is(outcome, 'acquired', 'its bytes are kept')
FROM convert_to('{"name": "a\u0000b"}', 'UTF8') body,
     idem_receive('inbox', 'audit', 'evt_9', payload => jsonb_build_object('raw', encode(body, 'base64')),
                  fingerprint => idem_fingerprint(body));
SELECT is(convert_from(decode(payload->>'raw', 'base64'), 'UTF8'), '{"name": "a\u0000b"}', 'as they came')
FROM idem_lookup('inbox', 'audit', 'evt_9');

SELECT * FROM finish();
ROLLBACK;
