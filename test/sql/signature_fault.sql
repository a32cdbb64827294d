-- idem_signature_fault: who debugs is told why a webhook is not verified, in the words of what he has passed; never a
-- secret, a signature that would be right, or anything of the delivery. It is null exactly where idem_verify_signature is
-- true.
BEGIN;
SELECT plan(56);

CREATE FUNCTION pg_temp.hmac(key bytea, content bytea) RETURNS bytea LANGUAGE sql AS $$
    WITH pad AS (
        SELECT string_agg(set_byte('\x00', 0, b # 54), '' ORDER BY i) AS inner_pad,
               string_agg(set_byte('\x00', 0, b # 92), '' ORDER BY i) AS outer_pad
        FROM generate_series(0, 63) i, LATERAL (SELECT CASE WHEN i < length(key) THEN get_byte(key, i) ELSE 0 END) x (b))
    SELECT sha256(outer_pad || sha256(inner_pad || content)) FROM pad
$$;
CREATE FUNCTION pg_temp.stripe(secret bytea, age interval DEFAULT '0') RETURNS text LANGUAGE sql AS $$
    SELECT format('t=%s,v1=%s', at, encode(pg_temp.hmac(secret, convert_to(at || '.{"cents": 1000}', 'UTF8')), 'hex'))
    FROM (SELECT extract(epoch FROM date_trunc('second', clock_timestamp() - age))::bigint::text) t (at)
$$;
CREATE FUNCTION pg_temp.hex(payload bytea) RETURNS text LANGUAGE sql
    AS $$SELECT encode(pg_temp.hmac('hush', payload), 'hex')$$;

SELECT is(idem_signature_fault('stripe', '{"cents": 1000}', pg_temp.stripe('hush'), 'hush'), NULL, 'genuine, one secret');
SELECT is(idem_signature_fault('stripe', '{"cents": 1000}', pg_temp.stripe('hush'), ARRAY['x', 'hush']), NULL,
    'genuine, two secrets');
SELECT is(idem_signature_fault('stripe', '{"cents": 1000}', jsonb_build_object('Stripe-Signature', pg_temp.stripe('hush')),
    'hush'), NULL, 'genuine, all headers');
SELECT is(idem_signature_fault('stripe', '{"cents": 1000}', jsonb_build_object('Stripe-Signature', pg_temp.stripe('hush')),
    ARRAY['hush', 'x']), NULL, 'genuine, all headers and two secrets');

-- One header

SELECT unnest(ARRAY[is(idem_signature_fault(scheme, payload, header, 'hush'), fault, fault),
                    is(idem_verify_signature(scheme, payload, header, 'hush'), false, 'and so it is not verified')])
FROM (VALUES
    ('stripe', NULL::bytea, pg_temp.stripe('hush'), 'payload is null'),
    ('stripe', '{}', NULL, 'header is null'),
    ('stripe', '{}', '', 'no header "stripe-signature"'),
    ('stripe', '{}', '{"stripe-signature": "t=1,v1=00"}', 'header is JSON, passed as text: cast it to jsonb'),
    ('stripe', '{}', 't=1', 'header "stripe-signature" holds no signature (v1=… in hex)'),
    ('stripe', '{}', 'v1=' || repeat('0', 64), 'header "stripe-signature" holds no time'),
    ('stripe', '{}', 't=x,v1=' || repeat('0', 64), 'header "stripe-signature" does not hold one time in seconds since 1970'),
    ('stripe', '{}', repeat('v1=' || repeat('0', 64) || ',', 17) || 't=1', 'header "stripe-signature" holds too many signatures'),
    ('stripe', '{"cents": 9000}', pg_temp.stripe('hush'),
     'no signature matches: it was made with another secret, or the payload is not byte for byte what was signed'),
    ('stripe', '{"cents": 1000}', pg_temp.stripe('other'),
     'no signature matches: it was made with another secret, or the payload is not byte for byte what was signed'),
    ('hmac-sha256', '{}', '', 'no header'),
    ('hmac-sha256', '{}', 'x', 'header holds no signature (… in hex or base64)'),
    ('shopify', '{}', 'x', 'header "x-shopify-hmac-sha256" holds no signature (… in base64)'),
    ('hmac-sha256', '\\x7b7d', pg_temp.hex('{}'), 'payload is the text of a bytea (\x…), not its bytes'),
    ('hmac-sha256', 'e30=', pg_temp.hex('{}'), 'payload is still in base64'),
    ('hmac-sha256', '{}', pg_temp.hex('{}\012'), 'payload has lost the line feed at its end'),
    ('hmac-sha256', '{}\012', pg_temp.hex('{}'), 'payload has a line feed at its end which was not signed'),
    ('hmac-sha256', '{"path": "C:\\new"}'::bytea, pg_temp.hex(convert_to('{"path": "C:\\new"}', 'UTF8')),
     'payload has lost backslashes: pass it as bytea, not as text'))
    AS f (scheme, payload, header, fault);
SELECT matches(idem_signature_fault('stripe', '{"cents": 1000}', pg_temp.stripe('hush', '400 s'), 'hush'),
    '^timestamp is 40[0-9] s old, which is more than the tolerance$', 'how old it is');
SELECT matches(idem_signature_fault('stripe', '{"cents": 1000}', pg_temp.stripe('hush', '-400 s'), 'hush'),
    '^timestamp is (400|39[0-9]) s ahead of the server''s clock, which is more than the tolerance$', 'or how young');
SELECT is(idem_signature_fault('hmac-sha256', '{}', pg_temp.hex('{}'), ARRAY['x', E'hush\n']),
    'a secret has white space around it which its sender does not know of', 'a secret that was read from a file');

-- All headers

SELECT is(idem_signature_fault(scheme, '{}', headers, 'aHVzaA=='), fault, fault)
FROM (VALUES
    ('stripe', NULL::jsonb, 'headers is null'),
    ('stripe', '"{\"stripe-signature\": \"t=1,v1=00\"}"',
     'headers is not an object: JSON which is passed as a string has to be cast from text to jsonb'),
    ('stripe', '[{"stripe-signature": "t=1,v1=00"}]', 'headers is not an object, but an array'),
    ('stripe', '{}', 'no header "stripe-signature"'),
    ('stripe', '{"stripe-signature": 1}', 'header "stripe-signature" is not a text, or has several values'),
    ('stripe', '{"stripe-signature": "a", "Stripe-Signature": "b"}', 'header "stripe-signature" is not a text, or has several values'),
    ('standard-webhooks', '{"svix-timestamp": "1", "svix-signature": "v1,x"}', 'no header "webhook-id" or "svix-id"'),
    ('standard-webhooks', '{"webhook-id": "a.b", "webhook-timestamp": "1", "webhook-signature": "v1,x"}',
     'header "webhook-id" or "svix-id" is too long, or not of visible ASCII without dots'),
    ('slack', '{"x-slack-signature": "v0=00"}', 'no header "x-slack-request-timestamp"'),
    ('wecom', '{"msg_signature": "00", "timestamp": "1", "nonce": "1"}',
     'payload is not the text in the Encrypt element (echostr), which is base64'),
    ('wecom', '{"timestamp": "1", "nonce": "1"}', 'no header "msg_signature"')) AS f (scheme, headers, fault);

-- What the receiver got wrong is an error, as in idem_verify_signature

SELECT throws_ok($$SELECT idem_signature_fault('stripe', '{}', 'x', '')$$, '22023', 'secret 1 must not be empty', 'a secret');
SELECT throws_ok($$SELECT idem_signature_fault('paypal', '{}', 'x', 'x')$$, '22023', 'unknown signature scheme', 'a scheme');

SELECT * FROM finish();
ROLLBACK;
