-- idem_key and idem_business_key. Both are stored for ever: what they make must never change.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SELECT plan(52);

-- BLAKE2b-128 over handler, event_id and batch, each behind its length in four bytes, made with another implementation

SELECT is(idem_key(handler, event_id, batch), key::uuid, 'key ' || key)
FROM (VALUES ('charge-wallet', 'evt_123', NULL,                        '75bb4a48-3fbe-6c02-68bf-ddb33e09093e'),
             ('charge-wallet', 'evt_123', '2026-07',                   'b5228543-86af-51e1-8d89-15fe69a62406'),
             ('h', 'e', NULL,                                          '2149cf72-94e4-0fc3-c1fd-b0012770de93'),
             ('he', 'x', NULL,                                         'b3dea322-7745-fe05-eba1-3cae82009c69'),
             ('h', 'ex', NULL,                                         'c6ebafcd-bad5-a21b-4f94-0a0b04a9bf75'),
             ('处理器', '事件-é😀', NULL,                                '6162d38f-90d7-5da2-1a95-d90ac4161e35'),
             ('h', E'e\n ', NULL,                                      '2801137a-1057-f99c-b3b9-b84b484b6be6'),
             (repeat('a', 255), repeat('b', 1024), repeat('c', 255),   '70b72076-c16f-5ce5-8554-cbeedc140d49'))
         AS vector (handler, event_id, batch, key);

SELECT is(idem_key('h', 'e'), idem_key('h', 'e', NULL), 'batch may be left out');
SELECT isnt(idem_key('h', 'e', 'b'), idem_key('h', 'eb'), 'a batch is not a part of the event_id');
SELECT isnt(idem_key('a', 'b', 'c'), idem_key('a', 'c', 'b'), 'the order counts');
SELECT isnt(idem_key('é', 'e'), idem_key(normalize('é', NFD), 'e'), 'nothing is normalized');
SELECT is(count(DISTINCT idem_key(a, b, c)), 27::bigint, 'different parts, different keys')
FROM unnest(ARRAY['x', 'xx', 'xxx']) a, unnest(ARRAY['x', 'xx', 'xxx']) b, unnest(ARRAY['x', 'xx', NULL]) c;

SELECT throws_ok($$SELECT idem_key(NULL, 'e')$$, '22004', 'handler must not be null');
SELECT throws_ok($$SELECT idem_key('h', NULL)$$, '22004', 'event_id must not be null');
SELECT throws_ok($$SELECT idem_key('', 'e')$$, '22023', 'handler must not be empty');
SELECT throws_ok($$SELECT idem_key('h', '')$$, '22023', 'event_id must not be empty');
SELECT throws_ok($$SELECT idem_key('h', 'e', '')$$, '22023', 'batch must not be empty');
SELECT throws_ok($$SELECT idem_key(repeat('h', 256), 'e')$$, '22023', 'handler is too long');
SELECT throws_ok($$SELECT idem_key('h', repeat('e', 1025))$$, '22023', 'event_id is too long');
SELECT throws_ok($$SELECT idem_key('h', 'e', repeat('b', 256))$$, '22023', 'batch is too long');

CREATE TEMP TABLE generated (handler text, event_id text,
    key uuid GENERATED ALWAYS AS (idem_key(handler, event_id)) STORED);
INSERT INTO generated VALUES ('h', 'e');
SELECT is(key, '2149cf72-94e4-0fc3-c1fd-b0012770de93', 'a generated column may use it') FROM generated;

-- idem_business_key: parts with ":" between them, ":" and "\" within one behind "\"

SELECT is(idem_business_key(VARIADIC parts), key, 'business key ' || key)
FROM (VALUES (ARRAY['order-7'],                      'order-7'),
             (ARRAY['order-7', 'paid'],              'order-7:paid'),
             (ARRAY['a:b', 'c'],                     'a\:b:c'),
             (ARRAY['a', 'b:c'],                     'a:b\:c'),
             (ARRAY['a\', 'b'],                      'a\\:b'),
             (ARRAY['a\:b'],                         'a\\\:b'),
             (ARRAY['支付', 'é'],                    '支付:é'),
             (ARRAY[' ', E'\t'],                     E' :\t')) AS vector (parts, key);
SELECT is(idem_business_key('a', 'b', 'c'), 'a:b:c', 'parts may be written one by one');
SELECT is(count(DISTINCT idem_business_key(VARIADIC parts)), count(DISTINCT parts), 'different parts, different keys')
FROM unnest(ARRAY['a', 'a:', ':a', ':', '\', '\:', 'a\', ':\']) x,
     unnest(ARRAY['b', ':b', '\b', ':', '\', '\:', NULL]) y,
     LATERAL (SELECT array_remove(ARRAY[x, y], NULL)) AS list (parts);

-- Optional parts: an absent one leaves its place empty, as no part that is given may be

SELECT is(idem_business_key(required => required, optional => optional), key, 'business key ' || key)
FROM (VALUES (ARRAY['a', 'b'], ARRAY['c'],                    'a:b:c'),
             (ARRAY['a', 'b'], ARRAY[NULL],                   'a:b:'),
             (ARRAY['a'],      ARRAY[NULL, 'c:'],             'a::c\:'),
             (ARRAY['a'],      ARRAY['b', NULL],              'a:b:'),
             (ARRAY['a'],      ARRAY[NULL, NULL]::text[],     'a::'),
             (ARRAY['a\'],     ARRAY[NULL, '\']::text[],      'a\\::\\'),
             (ARRAY['a', 'b'], ARRAY[]::text[],               'a:b')) AS vector (required, optional, key);
SELECT is(count(DISTINCT idem_business_key(ARRAY[x], ARRAY[y, z])), 8 * 9 * 9::bigint, 'different parts, different keys')
FROM unnest(ARRAY['a', 'a:', ':a', ':', '\', '\:', 'a\', ':\']) x,
     unnest(ARRAY['b', ':b', '\b', ':', '\', '\:', ':\', '::', NULL]) y,
     unnest(ARRAY['b', ':b', '\b', ':', '\', '\:', ':\', '::', NULL]) z;
SELECT throws_ok($$SELECT idem_business_key(ARRAY['a', NULL], ARRAY['c'])$$, '22004',
    'required part 2 of the key must not be null');
SELECT throws_ok($$SELECT idem_business_key(ARRAY['a'], ARRAY['c', ''])$$, '22023',
    'optional part 2 of the key must not be empty', 'empty is not absent');
SELECT throws_ok($$SELECT idem_business_key(ARRAY[]::text[], ARRAY['c'])$$, '22023', 'at least one part must be given');
SELECT throws_ok($$SELECT idem_business_key(ARRAY['a'], NULL::text[])$$, '22004', 'optional must not be null');
SELECT is(idem_business_key('{a}', '{b}'), '{a}:{b}', 'two texts are parts, whatever they look like');

SELECT throws_ok($$SELECT idem_business_key('a', NULL, 'c')$$, '22004', 'part 2 of the key must not be null');
SELECT throws_ok($$SELECT idem_business_key('', 'b')$$, '22023', 'part 1 of the key must not be empty');
SELECT throws_ok($$SELECT idem_business_key('a', 'b', '')$$, '22023', 'part 3 of the key must not be empty');
SELECT throws_ok($$SELECT idem_business_key(VARIADIC '{}'::text[])$$, '22023', 'at least one part must be given');
SELECT throws_ok($$SELECT idem_business_key(VARIADIC NULL::text[])$$, '22004', 'parts must not be null');

SELECT idem_create_table('inbox') \g /dev/null
SELECT is(outcome, 'acquired', 'it serves as event_id')
FROM idem_accept('inbox', 'book', idem_business_key('order-7', 'paid'));
SELECT is(outcome, 'duplicate', 'again') FROM idem_accept('inbox', 'book', idem_business_key('order-7', 'paid'));

SELECT * FROM finish();
ROLLBACK;
