-- idem_fingerprint: what must not differ between two deliveries of one event. Fingerprints are stored, so they must
-- never change.
BEGIN;
SET LOCAL client_encoding = 'UTF8';
SELECT plan(89);

-- Of bytes and of text: a version byte and BLAKE2b-128, made with another implementation

SELECT is(idem_fingerprint(content), fingerprint::bytea, 'of bytes ' || content::text)
FROM (VALUES (''::bytea,         '\x01cae66941d9efbd404e4d88758ea67670'),
             ('abc',             '\x01cf4ab791c62b8d2b2109c90275287816'),
             ('\x00ff01',        '\x011635bb134ab06ede16b6c8665cde8579')) AS vector (content, fingerprint);
SELECT is(idem_fingerprint(content), fingerprint::bytea, 'of text ' || quote_literal(content))
FROM (VALUES (''::text,          '\x01cae66941d9efbd404e4d88758ea67670'),
             ('abc',             '\x01cf4ab791c62b8d2b2109c90275287816'),
             ('é事件',           '\x01e26c2eff9eabb8cb901efc7837806481')) AS vector (content, fingerprint);
SELECT is(idem_fingerprint('é'::text), idem_fingerprint(convert_to('é', 'UTF8')), 'text is its UTF-8 bytes');
SELECT isnt(idem_fingerprint('a'::text), idem_fingerprint('a '::text), 'every byte counts');
SELECT is(length(idem_fingerprint(decode(repeat('00', 1000000), 'hex'))), 17, 'however long, 17 bytes');
SELECT is(idem_fingerprint(NULL::bytea), NULL, 'of null bytes, null: unknown');
SELECT is(idem_fingerprint(NULL::text), NULL, 'of null text, null');
SELECT is(idem_fingerprint(NULL::jsonb, 'a'), NULL, 'of null jsonb, null');

-- Of named paths. The fixed vectors are of "+" and the value's tokens, "-" where there is none.

SELECT is(idem_fingerprint(content::jsonb, VARIADIC paths), fingerprint::bytea, format('of %s at %s', content, paths))
FROM (VALUES ('{"a": 1}',                            '{a}'::text[],      '\x02fa090bb529251bec4e0d925e644d0309'),
             ('{"a": "x"}',                          '{a}',              '\x02eba6bac1b6a2bb28f8f30bdbbfe182c6'),
             ('{"a": {"k": [true, null]}, "b": 2}',  '{a,b}',            '\x028c51884900920a21137fda17d8b9ecd6'))
         AS vector (content, paths, fingerprint);

-- A number of more than sixteen digits of base 10,000 before or after the point: exponent, sign and digits

SELECT is(idem_fingerprint(content::jsonb, 'a'), fingerprint::bytea, 'of the number ' || content)
FROM (VALUES ('{"a": 1e131071}', '\x024f253167853f516732901154916d7187'),
             ('{"a": -25e-99}', '\x02fd85c8d571999d9ab00821b4f74f2189'),
             ('{"a": 1e100}', '\x024053f7c58cb9167657efbc8b710cb5d0'),
             ('{"a": 99e66}', '\x02b879ee9efd684b0f8e99b99ca46042d3'),
             ('{"a": 1e68}', '\x0214cc5827741102b5f3d02d6cbb6e3633'),
             ('{"a": 1e-64}', '\x029f5365a19cf9665c38515cb04f2918d5')) AS vector (content, fingerprint);

CREATE FUNCTION pg_temp.peak_kb() RETURNS int LANGUAGE sql AS $$
    SELECT substring(pg_read_file('/proc/self/status') FROM 'VmHWM:\s+(\d+) kB')::int
$$;
CREATE TEMP TABLE huge AS SELECT jsonb_build_object('a', jsonb_agg(1e131071)) AS content FROM generate_series(1, 10000);
CREATE TEMP TABLE peak AS SELECT pg_temp.peak_kb() AS before;
SELECT isnt(idem_fingerprint(content, 'a'), NULL, 'of ten thousand numbers of 131072 digits') FROM huge;
SELECT cmp_ok(pg_temp.peak_kb() - before, '<', 64 * 1024, 'in a few megabytes') FROM peak;

-- Alike

SELECT is(idem_fingerprint(a::jsonb, VARIADIC paths), idem_fingerprint(b::jsonb, VARIADIC paths),
    format('alike: %s and %s at %s', a, b, paths))
FROM (VALUES ('{"cents": 1000}',                     '{"cents": 1000, "retry": 2, "at": "now"}',   '{cents}'::text[]),
             ('{"a": 1, "b": 2}',                    '{"b":2,"a":1}',                              '{a,b}'),
             ('{"o": {"a": 1, "b": 2}}',             '{"o": {"b": 2, "a": 1}}',                    '{o}'),
             ('{"o": {"aa": 1, "b": [{"y":1,"x":2}]}}', '{"o": {"b": [{"x":2,"y":1}], "aa": 1}}',  '{o}'),
             ('{"n": 1}',                            '{"n": 1.0}',                                 '{n}'),
             ('{"n": 1}',                            '{"n": 1e0}',                                 '{n}'),
             ('{"n": 1}',                            '{"n": 1.000000000000000000000000000000}',    '{n}'),
             ('{"n": 1000}',                         '{"n": 1E3}',                                 '{n}'),
             ('{"n": 0.001}',                        '{"n": 1e-3}',                                '{n}'),
             ('{"n": 0}',                            '{"n": -0.0}',                                '{n}'),
             ('{"n": 100000000000000000000000001}',  '{"n": 100000000000000000000000001.0}',       '{n}'),
             ('{"s": "é"}',                          '{"s": "\u00e9"}',                            '{s}'),
             ('{"a": 1, "a": 2}',                    '{"a": 2}',                                   '{a}'),
             ('{"d": {"o": {"cents": 5}}}',          '{"d": {"o": {"cents": 5, "x": 1}, "y": 2}}', '{"{d,o,cents}"}'),
             ('{"a": [1, 2, 3]}',                    '{"a": [0, 2]}',                              '{"{a,1}"}'),
             ('{"a": [1, 2, 3]}',                    '{"a": [3]}',                                 '{"{a,-1}"}'),
             ('{"a b": {"c,d": 1}}',                 '{"a b": {"c,d": 1, "e": 1}}',                '{"{a b,\"c,d\"}"}'),
             ('{"n": 1e200}',                        '{"n": 100e198}',                             '{n}'),
             ('{"n": 1e-200}',                       '{"n": 0.0100e-198}',                         '{n}'),
             ('{"a": 1}',                            '{"a": 1, "b": 2}',                           '{a,missing}'))
         AS pair (a, b, paths);
SELECT is(idem_fingerprint('{"a": {"b": 1}}'::jsonb, 'a'), idem_fingerprint('{"a": {"b": 1}}'::jsonb, '{a}'),
    'one key may be written as a list');
SELECT is(idem_fingerprint('{"a": 1}'::jsonb, '{}'), idem_fingerprint('{"a": 1.0}'::jsonb, '{}'),
    'the empty list is all of it');
SELECT is(idem_fingerprint('{"{a}": 1}'::jsonb, '{"{a}"}'), idem_fingerprint('{"{a}": 1, "a": 2}'::jsonb, '{"{a}"}'),
    'a key that looks like a list is written in a list');

-- Different

SELECT isnt(idem_fingerprint(a::jsonb, VARIADIC paths), idem_fingerprint(b::jsonb, VARIADIC paths),
    format('different: %s and %s at %s', a, b, paths))
FROM (VALUES ('{"cents": 1000}',                     '{"cents": 9900}',                            '{cents}'::text[]),
             ('{"n": 1}',                            '{"n": 1.01}',                                '{n}'),
             ('{"n": 1}',                            '{"n": -1}',                                  '{n}'),
             ('{"n": 1e200}',                        '{"n": 1e204}',                               '{n}'),
             ('{"n": 1e200}',                        '{"n": -1e200}',                              '{n}'),
             ('{"n": 1e200}',                        '{"n": 1.0001e200}',                          '{n}'),
             ('{"n": 1e200}',                        '{"n": 1e-200}',                              '{n}'),
             ('{"n": 100000000000000000000000001}',  '{"n": 100000000000000000000000002}',         '{n}'),
             ('{"n": 1}',                            '{"n": "1"}',                                 '{n}'),
             ('{"n": 1}',                            '{"n": true}',                                '{n}'),
             ('{"n": null, "k": 1}',                 '{"k": 1}',                                   '{n,k}'),
             ('{"n": null}',                         '{"n": "null"}',                              '{n}'),
             ('{"n": null}',                         '{"n": false}',                               '{n}'),
             ('{"n": 0}',                            '{"n": false}',                               '{n}'),
             ('{"n": ""}',                           '{"n": null}',                                '{n}'),
             ('{"n": {}}',                           '{"n": []}',                                  '{n}'),
             ('{"n": 1}',                            '{"n": [1]}',                                 '{n}'),
             ('{"n": [1]}',                          '{"n": [[1]]}',                               '{n}'),
             ('{"n": [1, 2]}',                       '{"n": [2, 1]}',                              '{n}'),
             ('{"n": ["a", "b"]}',                   '{"n": ["ab"]}',                              '{n}'),
             ('{"n": ["a", "b"]}',                   '{"n": {"a": "b"}}',                          '{n}'),
             ('{"n": {"a": 1}}',                     '{"n": {"b": 1}}',                            '{n}'),
             ('{"n": {"a": {"b": 1}}}',              '{"n": {"a": {}, "b": 1}}',                   '{n}'),
             ('{"a": 1, "b": 2}',                    '{"a": 2, "b": 1}',                           '{a,b}'),
             ('{"a": 1}',                            '{"b": 1}',                                   '{a,b}'),
             ('{"a": "x", "b": "yz"}',               '{"a": "xy", "b": "z"}',                      '{a,b}'),
             ('{"a": [1, 2]}',                       '{"a": [1, 3]}',                              '{"{a,1}"}'),
             ('{"s": "é"}',                          '{"s": "e\u0301"}',                           '{s}'))
         AS pair (a, b, paths);
SELECT isnt(idem_fingerprint('{"a": 1, "b": 2}'::jsonb, 'a', 'b'),
    idem_fingerprint('{"a": 1, "b": 2}'::jsonb, 'b', 'a'), 'different: the order of the paths counts');
SELECT isnt(idem_fingerprint('{"a": 1}'::jsonb, 'a'), idem_fingerprint('{"a": 1}'::jsonb, 'a', 'b'),
    'different: so does their number');
SELECT isnt(idem_fingerprint('{"a": 1}'::jsonb, '{}'), idem_fingerprint('{"a": 1}'::text),
    'different: jsonb and its text');

-- Refused

SELECT throws_ok($$SELECT idem_fingerprint('{"a": 1}'::jsonb)$$, '42883', NULL, 'which paths has to be said');
SELECT throws_ok($$SELECT idem_fingerprint('{"a": 1}'::jsonb, VARIADIC '{}'::text[])$$, '22023',
    'at least one path must be given');
SELECT throws_ok($$SELECT idem_fingerprint('{"a": 1}'::jsonb, 'a', NULL)$$, '22004', 'path 2 must not be null');
SELECT throws_ok($$SELECT idem_fingerprint('{"a": 1}'::jsonb, '{a,NULL}')$$, '22004',
    'a key in a path must not be null');
SELECT throws_ok($$SELECT idem_fingerprint('{"a": 1}'::jsonb, '{a')$$, '22P02', 'malformed array literal: "{a"',
    'a list of keys is written as an array');
SELECT throws_ok(format('SELECT idem_fingerprint(%L::jsonb, VARIADIC %L)', content, paths), '22023',
    'the document has none of the paths', format('nothing to compare in %s at %s', content, paths))
FROM (VALUES ('{"data": {"object": {"amount": 1000}}}', '{amount}'),
             ('{"a": 1}',                               '{b,"{a,b}"}'),
             ('{}',                                     '{a}'),
             ('"{\"amount\": 1000}"',                   '{amount}'),
             ('null',                                   '{a}')) AS nothing (content, paths);
SELECT is(idem_fingerprint((content #>> '{}')::jsonb, 'amount'), idem_fingerprint('{"amount": 1000}'::jsonb, 'amount'),
    'JSON in a string is parsed first') FROM to_jsonb('{"amount": 1000}'::text) AS content;
SELECT is(idem_fingerprint('{"a": 1}'::jsonb, VARIADIC NULL::text[]), NULL, 'null instead of paths is unknown');

SELECT * FROM finish();
ROLLBACK;
