-- idem_verify_signature: a genuine delivery is verified, by whichever secret and in whichever form its headers come; a
-- forged, changed or replayed one is not, and nothing that comes from outside raises an error. What the caller got wrong
-- does, and never shows a secret.
--
-- Deliveries are signed here, by SQL alone, since they have to be recent. test/unit/signature_test.cpp has the vectors
-- of the senders' own libraries.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SELECT plan(257);

CREATE FUNCTION pg_temp.hmac(key bytea, content bytea) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
    inner_pad bytea := decode(repeat('36', 64), 'hex');
    outer_pad bytea := decode(repeat('5c', 64), 'hex');
BEGIN
    IF length(key) > 64 THEN key := sha256(key); END IF;
    FOR i IN 0 .. length(key) - 1 LOOP
        inner_pad := set_byte(inner_pad, i, get_byte(inner_pad, i) # get_byte(key, i));
        outer_pad := set_byte(outer_pad, i, get_byte(outer_pad, i) # get_byte(key, i));
    END LOOP;
    RETURN sha256(outer_pad || sha256(inner_pad || content));
END $$;
CREATE FUNCTION pg_temp.seconds(age interval) RETURNS text LANGUAGE sql
    AS $$SELECT extract(epoch FROM date_trunc('second', clock_timestamp() - age))::bigint::text$$;

-- Each signs the body '{"cents": 1000}', of this age, with a secret.
CREATE FUNCTION pg_temp.standard(secret text, age interval DEFAULT '0') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object(
        'webhook-id', 'msg_1', 'webhook-timestamp', at,
        'webhook-signature', 'v1,' || encode(pg_temp.hmac(decode(substr(secret, 7), 'base64'),
                                                          convert_to('msg_1.' || at || '.{"cents": 1000}', 'UTF8')), 'base64'))
    FROM pg_temp.seconds(age) AS at
$$;
CREATE FUNCTION pg_temp.stripe(secret text, age interval DEFAULT '0') RETURNS text LANGUAGE sql AS $$
    SELECT format('t=%s,v1=%s,v0=00', at, encode(pg_temp.hmac(convert_to(secret, 'UTF8'),
                                                              convert_to(at || '.{"cents": 1000}', 'UTF8')), 'hex'))
    FROM pg_temp.seconds(age) AS at
$$;
CREATE FUNCTION pg_temp.github(secret text) RETURNS text LANGUAGE sql
    AS $$SELECT 'sha256=' || encode(pg_temp.hmac(convert_to(secret, 'UTF8'), '{"cents": 1000}'), 'hex')$$;
CREATE FUNCTION pg_temp.base64(secret text) RETURNS text LANGUAGE sql
    AS $$SELECT encode(pg_temp.hmac(convert_to(secret, 'UTF8'), '{"cents": 1000}'), 'base64')$$;
CREATE FUNCTION pg_temp.slack(secret text, age interval DEFAULT '0') RETURNS jsonb LANGUAGE sql AS $$
    SELECT jsonb_build_object('X-Slack-Request-Timestamp', at, 'X-Slack-Signature',
                              'v0=' || encode(pg_temp.hmac(convert_to(secret, 'UTF8'),
                                                           convert_to('v0:' || at || ':{"cents": 1000}', 'UTF8')), 'hex'))
    FROM pg_temp.seconds(age) AS at
$$;

SELECT is(encode(pg_temp.hmac(decode('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64'),
                              'msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}'), 'base64'),
    'g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=', 'signatures made here are those of the senders');

-- Genuine

CREATE TEMP TABLE genuine (scheme text, headers jsonb, secret text, other text);
INSERT INTO genuine VALUES
    ('standard-webhooks', pg_temp.standard('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0'),
     'whsec_YSBrZXkgb2YgdGhpcyB0ZXN0', 'whsec_YW5vdGhlciBrZXkgb2YgaXQ='),
    ('stripe', jsonb_build_object('Stripe-Signature', pg_temp.stripe('whsec_stripe')), 'whsec_stripe', 'whsec_other'),
    ('github', jsonb_build_object('X-Hub-Signature-256', pg_temp.github('a secret é')), 'a secret é', 'a secret'),
    ('shopify', jsonb_build_object('X-Shopify-Hmac-Sha256', pg_temp.base64('shpss_1')), 'shpss_1', 'shpss_2'),
    ('slack', pg_temp.slack('8f74'), '8f74', '8f75'),
    ('line', jsonb_build_object('x-line-signature', pg_temp.base64('channel secret')), 'channel secret', 'secret'),
    ('meta', jsonb_build_object('X-Hub-Signature-256', pg_temp.github('app secret')), 'app secret', 'secret');

SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', headers, secret), true, scheme || ': verified')
FROM genuine;
SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', headers, other), false, scheme || ': not with another secret')
FROM genuine;
SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', headers, ARRAY[other, secret]), true,
    scheme || ': with the second of two secrets')
FROM genuine;
SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', headers, ARRAY[secret, other]), true,
    scheme || ': with the first of two secrets')
FROM genuine;
SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', headers, ARRAY[other, other]), false,
    scheme || ': not with two others')
FROM genuine;
SELECT is(idem_verify_signature(scheme, payload, headers, secret), false, format('%s: not %L', scheme, payload))
FROM genuine,
     (VALUES (''::bytea), ('{"cents": 9000}'), ('{"cents":1000}'), ('{"cents": 1000}\012'), ('{"cents": 1000'),
             ('\x00')) AS changed (payload);
SELECT is(idem_verify_signature(a.scheme, '{"cents": 1000}', b.headers, a.secret), false,
    format('%s: not by headers of %s', a.scheme, b.scheme))
FROM genuine a JOIN genuine b ON a.scheme <> b.scheme;
SELECT is(idem_verify_signature('stripe', '{"cents": 1000}', pg_temp.stripe('whsec_stripe'), 'whsec_stripe'), true,
    'stripe: its header alone');
SELECT is(idem_verify_signature('stripe', '{"cents": 1000}', pg_temp.stripe('whsec_stripe'),
                                ARRAY['whsec_new', 'whsec_stripe']), true, 'with several secrets');
SELECT is(idem_verify_signature('github', '{"cents": 1000}', pg_temp.github('x'), 'x'), true, 'github: its header alone');
SELECT is(idem_verify_signature('github', '{"cents": 1000}', pg_temp.github('x'), ARRAY['y', 'x']), true,
    'with several secrets');
SELECT is(idem_verify_signature('github', 'Hello, World!',
    'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17', 'It''s a Secret to Everybody'), true,
    'github: the example in its documentation');
SELECT is(idem_verify_signature(scheme => 'github', payload => '{"cents": 1000}', header => pg_temp.github('x'),
    secrets => '{x}', tolerance => '1 hour'), true, 'arguments have names');
SELECT is(idem_verify_signature('github', decode(repeat('00ff', 1000000), 'hex'),
    'sha256=' || encode(pg_temp.hmac('x', decode(repeat('00ff', 1000000), 'hex')), 'hex'), 'x'), true,
    'github: two megabytes of any bytes');
SELECT is(idem_verify_signature(scheme, '{"cents": 1000}', pg_temp.base64('x'), 'x'), verified, scheme || ': in base64')
FROM (VALUES ('shopify', true), ('line', true), ('hmac-sha256', true), ('github', false), ('meta', false))
     AS s (scheme, verified);
SELECT is(idem_verify_signature('hmac-sha256', '{"cents": 1000}', substr(pg_temp.github('x'), 8), ARRAY['y', 'x']), true,
    'hmac-sha256: in hex');
SELECT is(idem_verify_signature('hmac-sha256', '{"cents": 1000}', pg_temp.github('x'), 'x'), false,
    'hmac-sha256: a prefix is not of it');

-- WeCom, whose SHA-1 SQL does not have: by @wecom/crypto 1.0.1, for the first second of 2036.

CREATE TEMP TABLE wecom AS SELECT
    'sKqRbbiSUnDhFHOvPjtUMfbLRMcTBjnd1r6Ij2q1mbddksxa8fVFSIrTDImvmHBfX0tukkixdIcy+e4vBrbNiqYCIa4aLXha/Vpf2bmwBrYe4XVDXVHiDxaV2HVpGqnquUbaq8WqXHXmxpvgglBNxMIqpVhMV2TudAC/6U+KVHE='::bytea AS encrypted,
    '{"msg_signature": "56322599374ad735349e001372670e53efe7cc67", "timestamp": "2082758400", "nonce": "1372623149"}'::jsonb AS parameters;
SELECT is(idem_verify_signature('wecom', payload, given, secret, tolerance), verified, 'wecom: ' || name)
FROM wecom,
     LATERAL (VALUES
        (true,  'verified', encrypted, parameters, 'QDG6eK', '3660 days'::interval),
        (true,  'echostr, by any parameters beside', encrypted, parameters || '{"echostr": "x"}', 'QDG6eK', '3660 days'),
        (false, 'with another token', encrypted, parameters, 'QDG6eL', '3660 days'),
        (false, 'with another nonce', encrypted, parameters || '{"nonce": "1372623148"}', 'QDG6eK', '3660 days'),
        (false, 'at another time', encrypted, parameters || '{"timestamp": "2082758401"}', 'QDG6eK', '3660 days'),
        (false, 'too early', encrypted, parameters, 'QDG6eK', '1 day'),
        (false, 'another message', overlay(encrypted PLACING 't' FROM 1), parameters, 'QDG6eK', '3660 days'),
        (false, 'all of the body', '<xml><Encrypt>' || encrypted || '</Encrypt></xml>', parameters, 'QDG6eK', '3660 days'),
        (false, 'no nonce', encrypted, parameters - 'nonce', 'QDG6eK', '3660 days'),
        (false, 'no time', encrypted, parameters - 'timestamp', 'QDG6eK', '3660 days'))
     AS w (verified, name, payload, given, secret, tolerance);
SELECT is(idem_verify_signature('wecom', encrypted, parameters, ARRAY['another', 'QDG6eK'], '3660 days'), true,
    'wecom: with the second of two tokens')
FROM wecom;

-- Ed25519, which SQL can't sign with: by Node.js 20, for the first second of 2036, in the years around it.

CREATE TEMP TABLE ed25519 AS SELECT
    '{"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "2082758400", "webhook-signature":
      "v1a,yfbrYXFkr7E10MPX6w0Uwsz3UDHpPqlsrP+ZsmjA6I1tWhenZJrX+lkZjKavx8dpe5DKWKnC2V3JUHQRgoACBw=="}'::jsonb AS headers,
    'whpk_ZlN4eg7dSSqi0moX9hQUk3orrOouK3QVQSlJa248c/g=' AS public_key;
SELECT is(idem_verify_signature('standard-webhooks', '{"test": 2432232314}', headers, public_key, '3660 days'), true,
    'standard-webhooks: v1a with a public key')
FROM ed25519;
SELECT is(idem_verify_signature('standard-webhooks', '{"test": 2432232314}', headers,
                                ARRAY['whsec_YSBrZXkgb2YgdGhpcyB0ZXN0', public_key], '3660 days'), true,
    'v1a, with a public key among the secrets')
FROM ed25519;
SELECT is(idem_verify_signature('standard-webhooks', '{"test": 2432232315}', headers, public_key, '3660 days'), false,
    'v1a: not with another payload')
FROM ed25519;
SELECT is(idem_verify_signature('standard-webhooks', '{"test": 2432232314}', headers || '{"webhook-id": "msg_2"}',
                                public_key, '3660 days'), false, 'v1a: not with another id')
FROM ed25519;
SELECT is(idem_verify_signature('standard-webhooks', '{"test": 2432232314}', headers, substr(public_key, 6),
                                '3660 days'), false, 'v1a: not where the key is said to be a secret')
FROM ed25519;

-- When

SELECT is(idem_verify_signature('standard-webhooks', '{"cents": 1000}', pg_temp.standard(secret, age), secret), verified,
    format('standard-webhooks, signed %s ago: %s', age, verified))
FROM (VALUES ('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0')) AS s (secret),
     (VALUES ('2 minutes'::interval, true), ('10 minutes', false), ('-2 minutes', true), ('-10 minutes', false),
             ('1 day', false), ('-1 day', false)) AS a (age, verified);
SELECT is(idem_verify_signature('stripe', '{"cents": 1000}', pg_temp.stripe('x', age), 'x'), verified,
    format('stripe, signed %s ago: %s', age, verified))
FROM (VALUES ('2 minutes'::interval, true), ('10 minutes', false), ('-2 minutes', true), ('-10 minutes', false),
             ('1 day', false), ('-1 day', false)) AS a (age, verified);
SELECT is(idem_verify_signature('stripe', '{"cents": 1000}', pg_temp.stripe('x', age), 'x', tolerance), verified,
    format('signed %s ago, tolerance %s: %s', age, tolerance, verified))
FROM (VALUES ('30 minutes'::interval, '1 hour'::interval, true), ('2 hours', '1 hour', false),
             ('20 hours', '1 day', true), ('2 minutes', '1 minute', false)) AS a (age, tolerance, verified);
SELECT is(idem_verify_signature('github', '{"cents": 1000}', pg_temp.github('x'), 'x', '1 microsecond'), true,
    'github has no timestamp');

-- Headers as frameworks pass them on

CREATE TEMP VIEW form AS
    SELECT s.secret, h.headers, h.headers ->> 'webhook-id' AS id, h.headers ->> 'webhook-timestamp' AS at,
           h.headers ->> 'webhook-signature' AS signature
    FROM (VALUES ('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0')) AS s (secret), pg_temp.standard(s.secret) AS h (headers);
SELECT is(idem_verify_signature('standard-webhooks', '{"cents": 1000}', given, secret), verified, name)
FROM form,
     LATERAL (VALUES
        (true,  'in capitals', jsonb_build_object('WEBHOOK-ID', id, 'Webhook-Timestamp', at,
                                                  'webHook-signatuRe', signature)),
        (true,  'among others', '{"host": "a", "accept": ["b", "c"], "x": null, "y": {"webhook-id": "z"}}' || headers),
        (true,  'in arrays', jsonb_build_object('Webhook-Id', ARRAY[id], 'Webhook-Timestamp', ARRAY[at],
                                                'Webhook-Signature', ARRAY[signature])),
        (true,  'named by Svix', jsonb_build_object('svix-id', id, 'svix-timestamp', at, 'Svix-Signature', signature)),
        (true,  'under both names', headers || jsonb_build_object('svix-id', id, 'svix-timestamp', at,
                                                                  'svix-signature', signature)),
        (true,  'twice alike', headers || jsonb_build_object('Webhook-Id', ARRAY[id, id])),
        (true,  'several signatures', headers || jsonb_build_object('webhook-signature', 'v1,bm8= v2,x ' || signature)),
        (false, 'two ids', headers || '{"Webhook-Id": "msg_2"}'),
        (false, 'two ids in an array', headers || '{"webhook-id": ["msg_1", "msg_2"]}'),
        (false, 'another id named by Svix', headers || '{"svix-id": "msg_2"}'),
        (false, 'another time named by Svix', headers || '{"svix-timestamp": "1"}'),
        (false, 'another signature named by Svix', headers || '{"svix-signature": "v1,bm8="}'),
        (false, 'an id that is null beside one', headers || '{"Webhook-Id": null}'),
        (false, 'another id', headers || '{"webhook-id": "msg_2"}'),
        (false, 'another time', headers || jsonb_build_object('webhook-timestamp', (at::bigint - 1)::text)),
        (false, 'a time that is a number', headers || jsonb_build_object('webhook-timestamp', at::bigint)),
        (false, 'no id', headers - 'webhook-id'),
        (false, 'no time', headers - 'webhook-timestamp'),
        (false, 'no signature', headers - 'webhook-signature'),
        (false, 'an empty id', headers || '{"webhook-id": ""}'),
        (false, 'an empty array', headers || '{"webhook-signature": []}'),
        (false, 'an array of arrays', headers || jsonb_build_object('webhook-signature', ARRAY[ARRAY[signature]])),
        (false, 'an object', headers || jsonb_build_object('webhook-signature', jsonb_build_object('v1', signature))),
        (false, 'a name that begins like it',
            (headers - 'webhook-id') || jsonb_build_object('webhook-id2', id)),
        (false, 'a name that it begins with', (headers - 'webhook-id') || jsonb_build_object('webhook-i', id)),
        (false, 'one level down', jsonb_build_object('headers', headers)),
        (false, 'in an array', jsonb_build_array(headers)),
        (false, 'as a string', to_jsonb(headers::text)),
        (false, 'empty', '{}'), (false, 'an empty list', '[]'), (false, 'null', 'null'), (false, 'a number', '1'),
        (false, 'a boolean', 'true'))
     AS f (verified, name, given);

-- What comes from outside never raises

CREATE FUNCTION pg_temp.said(scheme text, payload bytea, header text, headers jsonb, secrets text[],
                             tolerance interval DEFAULT '5 minutes') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    verified boolean;
    message text;
    detail text;
    hint text;
    context text;
BEGIN
    verified := CASE WHEN headers IS NULL THEN idem_verify_signature(scheme, payload, header, secrets, tolerance)
                     ELSE idem_verify_signature(scheme, payload, headers, secrets, tolerance) END;
    RETURN verified;
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
        context = PG_EXCEPTION_CONTEXT;
    RETURN concat_ws(E'\n', SQLSTATE, message, nullif(detail, ''), nullif(hint, ''),
                     (regexp_match(concat(message, detail, hint, context), 'hidden.*'))[1]);
END $$;

CREATE TEMP TABLE malformed (header text);
INSERT INTO malformed VALUES
    (NULL), (''), (' '), (','), ('='), ('t'), ('t='), ('t=,v1='), ('v1='), ('v1,'), ('sha256='), ('sha256=0'),
    ('sha256=' || repeat('0', 63)), ('sha256=' || repeat('0', 65)), ('sha256=' || repeat('g', 64)),
    ('sha1=' || repeat('0', 40)),
    ('t=99999999999999999999999999,v1=' || repeat('0', 64)), ('t=-9223372036854775808,v1=00'), ('t=1e9,v1=00'),
    ('v1,' || repeat('A', 43)), ('v1,' || repeat('A', 1000)), ('v1a,' || repeat('A', 86) || '=='), ('v1,é'), (U&'\6e08'),
    (repeat('v1,A= ', 100000)), (repeat(',', 1000000)), (repeat('t=1,', 100000)), (E'\n\r\t'), ('%s%n'), ('{}'),
    (E'\\x00');
SELECT is(count(*) FILTER (WHERE said <> 'false'), 0::bigint, scheme || ': malformed headers verify nothing')
FROM (SELECT scheme, pg_temp.said(scheme, '{}', header, NULL, '{hidden}') AS said
      FROM malformed, (VALUES ('stripe'), ('github'), ('shopify'), ('line'), ('meta'), ('hmac-sha256')) AS s (scheme)) AS answer
GROUP BY scheme;
SELECT is(count(*) FILTER (WHERE said <> 'false'), 0::bigint, scheme || ': nor in ' || field)
FROM (SELECT scheme, field,
             pg_temp.said(scheme, '{"cents": 1000}', NULL, headers || jsonb_build_object(field, header),
                          ARRAY[secret]) AS said
      FROM malformed, genuine,
           (VALUES ('webhook-id'), ('webhook-timestamp'), ('webhook-signature'), ('Stripe-Signature'),
                   ('X-Hub-Signature-256'), ('X-Shopify-Hmac-Sha256'), ('X-Slack-Signature'),
                   ('X-Slack-Request-Timestamp'), ('x-line-signature')) AS f (field)
      WHERE headers ? field) AS answer
GROUP BY scheme, field;
SELECT is(pg_temp.said(scheme, NULL, NULL, headers, ARRAY[secret]), 'false', scheme || ': no payload is not verified')
FROM genuine;
SELECT is(pg_temp.said('stripe', NULL, pg_temp.stripe('x'), NULL, '{x}'), 'false', 'nor beside one header');
SELECT is(idem_verify_signature('standard-webhooks', '', NULL::jsonb, secret), false, 'no headers are not verified')
FROM genuine WHERE scheme = 'standard-webhooks';
SELECT is(idem_verify_signature('stripe', '', NULL::text, 'x'), false, 'nor no header');

-- What the caller got wrong does, without a word of a secret

SELECT is(pg_temp.said(scheme, '{}', 'sha256=00', headers, secrets, tolerance), said, split_part(said, E'\n', 2))
FROM (VALUES
    (1, 'paypal', NULL::jsonb, '{hidden}'::text[], '1 day'::interval, '22023
unknown signature scheme
The schemes are "standard-webhooks", "stripe", "github", "shopify", "slack", "wecom", "line", "meta" and "hmac-sha256".'),
    (2, 'hidden', '{}', '{hidden}', '1 day', '22023
unknown signature scheme
The schemes are "standard-webhooks", "stripe", "github", "shopify", "slack", "wecom", "line", "meta" and "hmac-sha256".'),
    (3, NULL, NULL, '{hidden}', '1 day', '22004
scheme must not be null'),
    (4, 'standard-webhooks', NULL, '{hidden}', '1 day', '22023
this scheme needs more than one header
Pass all headers of the delivery as jsonb.'),
    (19, 'slack', NULL, '{hidden}', '1 day', '22023
this scheme needs more than one header
Pass all headers of the delivery as jsonb.'),
    (20, 'hmac-sha256', '{}', '{hidden}', '1 day', '22023
this scheme does not say which header it is
Pass the signature as text.'),
    (5, 'stripe', NULL, NULL, '1 day', '22004
secrets must not be null'),
    (6, 'stripe', '{}', '{}', '1 day', '22023
at least one secret must be given
Without one nothing can be verified.'),
    (7, 'stripe', '{}', '{hidden,NULL}', '1 day', '22004
secret 2 must not be null'),
    (8, 'stripe', NULL, '{hidden,""}', '1 day', '22023
secret 2 must not be empty
An empty secret is known to everybody.'),
    (9, 'github', NULL, '{" "}', '1 day', '22023
secret 1 must not be empty
An empty secret is known to everybody.'),
    (10, 'standard-webhooks', '{}', '{whsec_}', '1 day', '22023
secret 1 must not be empty
An empty secret is known to everybody.'),
    (11, 'standard-webhooks', '{}', '{YSBrZXk=,whsec_hidden!}', '1 day', '22023
secret 2 is malformed
Pass it as the sender shows it: "whsec_", or "whpk_" for a public key, and then base64.'),
    (12, 'standard-webhooks', '{}', '{whpk_hidden}', '1 day', '22023
secret 1 is malformed
Pass it as the sender shows it: "whsec_", or "whpk_" for a public key, and then base64.'),
    (13, 'standard-webhooks', '{}', '{whsk_hidden}', '1 day', '22023
secret 1 is a private key
Pass the public key, which begins with "whpk_".'),
    (14, 'github', NULL, '{hidden}', NULL, '22004
tolerance must not be null'),
    (15, 'github', NULL, '{hidden}', '0', '22023
tolerance must be positive'),
    (16, 'stripe', NULL, '{hidden}', '-1 second', '22023
tolerance must be positive'),
    (17, 'stripe', '{}', '{hidden}', '1 month', '22023
tolerance has no fixed length
Months and years differ in length.
Say it in days or hours; a day is 24 hours.'),
    (18, 'stripe', '{}', '{hidden}', '3661 days', '22023
tolerance is too long
At most 3660 days are allowed.'))
    AS wrong (number, scheme, headers, secrets, tolerance, said)
ORDER BY number;
SELECT throws_ok($$SELECT idem_verify_signature('stripe', NULL, NULL, NULL::text)$$, '22004', 'secret must not be null',
    'mistakes show although there is nothing to verify');

-- Parameters of drivers that send no types

PREPARE verify AS SELECT idem_verify_signature($1, $2, $3, $4);
SELECT is(parameter_types, '{text,bytea,text,text}', 'untyped parameters are one header and one secret')
FROM pg_prepared_statements WHERE name = 'verify';
SELECT throws_ok($$EXECUTE verify('stripe', '', '', '{"hidden","hidden too"}')$$, '22023', 'secret looks like an array',
    'several in one untyped parameter are not taken for one secret, nor quoted');
SELECT throws_ok($$SELECT idem_verify_signature('stripe', '', '{}'::jsonb, '{}')$$, '22023',
    'secret looks like an array', 'not even none');
PREPARE verify_several AS SELECT idem_verify_signature($1, $2, $3::jsonb, ARRAY[$4, $5]);
SELECT is(parameter_types, '{text,bytea,jsonb,text,text}', 'several are written as an array of parameters')
FROM pg_prepared_statements WHERE name = 'verify_several';
SELECT results_eq($$EXECUTE verify_several('github', 'Hello, World!', '{"x-hub-signature-256":
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}', 'other', 'It''s a Secret to Everybody')$$,
    ARRAY[true], 'and verify');

-- Anybody may verify, and ask why not

CREATE ROLE regress_idem_none;
SET LOCAL ROLE regress_idem_none;
SELECT is(idem_verify_signature('github', 'Hello, World!',
    'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17', 'It''s a Secret to Everybody'), true,
    'no privilege is needed');
RESET ROLE;

-- A forged delivery does not occupy the id of an event

SELECT idem_create_table('inbox') \g /dev/null
PREPARE receive (bytea, jsonb, text[]) AS
    WITH genuine AS MATERIALIZED (
        SELECT $2 ->> 'webhook-id' AS id WHERE idem_verify_signature('standard-webhooks', $1, $2, $3))
    SELECT outcome FROM genuine, idem_accept('inbox', 'book', id);
SELECT is_empty($$EXECUTE receive('{"cents": 9000}', pg_temp.standard('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0'),
                                  '{whsec_YSBrZXkgb2YgdGhpcyB0ZXN0}')$$, 'forged: nothing is accepted');
SELECT is_empty('TABLE inbox', 'nor written');
SELECT results_eq($$EXECUTE receive('{"cents": 1000}', pg_temp.standard('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0'),
                                    '{whsec_YSBrZXkgb2YgdGhpcyB0ZXN0}')$$, ARRAY['acquired'::idem_outcome],
    'the genuine one comes after it, and is accepted');
SELECT results_eq($$EXECUTE receive('{"cents": 1000}', pg_temp.standard('whsec_YSBrZXkgb2YgdGhpcyB0ZXN0'),
                                    '{whsec_YSBrZXkgb2YgdGhpcyB0ZXN0}')$$, ARRAY['duplicate'::idem_outcome], 'once');

SELECT * FROM finish();
ROLLBACK;
