-- Arguments which every claiming and settling function checks alike: refused with a clear error, and nothing is
-- written.
BEGIN;
SELECT plan(204);

SELECT idem_create_table('inbox') \g /dev/null
SELECT idem_create_table('outbox', mode => 'lease') \g /dev/null

-- Every function which takes an event, with its other arguments in order
CREATE TEMP TABLE call (function text, rest text);
INSERT INTO call VALUES
    ('idem_acquire', ''),
    ('idem_accept',  ''),
    ('idem_commit',  ', attempt => 1'),
    ('idem_release', ', error => ''no'''),
    ('idem_extend',  ', attempt => 1'),
    ('idem_lookup',  '');

-- Identity

SELECT throws_ok(format('SELECT %s(%s%s)', function, arguments, rest), state, message,
    format('%s: %s', function, message))
FROM call,
     (VALUES (1, 'NULL, ''book'', ''e''',                                            '22004', 'dedup must not be null'),
             (2, '''inbox'', NULL, ''e''',                                   '22004', 'handler must not be null'),
             (3, '''inbox'', ''book'', NULL',                                '22004', 'event_id must not be null'),
             (4, '''inbox'', '''', ''e''',                                   '22023', 'handler must not be empty'),
             (5, '''inbox'', ''book'', ''''',                                '22023', 'event_id must not be empty'),
             (6, '''inbox'', ''book'', ''e'', ''''',                         '22023', 'batch must not be empty'),
             (7, '''inbox'', repeat(''h'', 256), ''e''',                     '22023', 'handler is too long'),
             (8, '''inbox'', ''book'', repeat(''e'', 1025)',                 '22023', 'event_id is too long'),
             (9, '''inbox'', ''book'', ''e'', repeat(''b'', 256)',           '22023', 'batch is too long'),
             (10, '''inbox'', repeat(U&''\00e9'', 128), ''e''',              '22023', 'handler is too long'),
             (11, '''inbox'', ''book'', repeat(U&''\6e08'', 342)',           '22023', 'event_id is too long'),
             (12, '''inbox'', ''book'', ''e'', repeat(U&''\00e9'', 128)',    '22023', 'batch is too long'),
             (13, '''inbox'', ''book'', repeat(''e'', 1000000)',             '22023', 'event_id is too long'))
         AS bad (number, arguments, state, message)
ORDER BY function, number;

-- The table

SELECT throws_ok(format('SELECT %s(%s, ''book'', ''e''%s)', function, dedup, rest), state, message,
    format('%s: %s', function, message))
FROM call,
     (VALUES (1, '''pg_class''',                     '42809', '"pg_class" is not a dedup table'),
             (2, '''pg_class_oid_index''',           '42809', '"pg_class_oid_index" is not a dedup table'),
             (3, '''pg_tables''',                    '42809', '"pg_tables" is not a dedup table'),
             (4, '''inbox_g0''',                     '42809', '"inbox_g0" is not a dedup table'),
             (5, '''idem_registry''',                '42809', '"idem_registry" is not a dedup table'),
             (6, '''nowhere''',                      '42P01', 'relation "nowhere" does not exist'),
             (7, '4294967295::oid',                  '42P01', 'relation with OID 4294967295 does not exist'),
             (8, '0::oid',                           '42P01', 'relation with OID 0 does not exist'))
         AS bad (number, dedup, state, message)
ORDER BY function, number;

-- Attempts

SELECT throws_ok(format('SELECT %s(''outbox'', ''send'', ''e'', attempt => %s)', function, attempt), '22023',
    format('attempt must be positive, not %s', attempt), format('%s: attempt %s', function, attempt))
FROM call, unnest(ARRAY[0, -1, -2147483648]) attempt
WHERE function IN ('idem_commit', 'idem_release', 'idem_extend')
ORDER BY function, attempt;
SELECT throws_ok(format('SELECT %s(''outbox'', ''send'', ''e'', attempt => 2147483647)', function), 'ID002',
    'no such claim on event "e" of handler "send"', format('%s: the highest attempt is no error of its own', function))
FROM call WHERE function IN ('idem_commit', 'idem_release', 'idem_extend')
ORDER BY function;

-- Windows and pauses

SELECT throws_ok(format('SELECT %s(%L, ''book'', ''e'', %s => %L)', function, dedup, name, span), '22023',
    name || ' ' || fault,
    format('%s: %s %s', function, name, span))
FROM (VALUES ('idem_acquire', 'inbox', 'hot_window'), ('idem_acquire', 'outbox', 'hot_window'),
             ('idem_extend', 'outbox', 'hot_window'), ('idem_commit', 'inbox', 'cold_window'),
             ('idem_acquire', 'inbox', 'wait'), ('idem_release', 'inbox', 'retry_after'))
         AS windowed (function, dedup, name),
     (VALUES ('1 month',             'has no fixed length'),
             ('1 year',              'has no fixed length'),
             ('-1 microsecond',      'must be positive'),
             ('1 day -25 hours',     'must be positive'),
             ('3661 days',           'is too long')) AS bad (span, fault)
ORDER BY function, dedup, name, span;
SELECT throws_ok(format('SELECT %s(%L, ''book'', ''e'', %s => ''0'')', function, dedup, name), '22023',
    name || ' must be positive',
    format('%s: %s 0', function, name))
FROM (VALUES ('idem_acquire', 'inbox', 'hot_window'), ('idem_extend', 'outbox', 'hot_window'),
             ('idem_commit', 'inbox', 'cold_window')) AS windowed (function, dedup, name);
SELECT throws_ok(format('SELECT %s(%L, ''book'', ''e'', %s => %L)', function, dedup, name, span), '22023',
    format('%s is longer than that of dedup table "%s"', name, dedup),
    format('%s: %s longer than the table''s', function, name))
FROM (VALUES ('idem_acquire', 'inbox', 'hot_window', '16 minutes'),
             ('idem_acquire', 'outbox', 'hot_window', '16 minutes'),
             ('idem_extend', 'outbox', 'hot_window', '16 minutes'), ('idem_commit', 'inbox', 'cold_window', '31 days'))
         AS windowed (function, dedup, name, span);

-- Fingerprints

SELECT throws_ok(format('SELECT %s(''inbox'', ''book'', ''e'', fingerprint => %L)', function, fingerprint), '22023',
    'fingerprint is not one of idem''s', format('%s: %s', function, what))
FROM unnest(ARRAY['idem_acquire', 'idem_accept']) function,
     (VALUES ('an empty fingerprint',             ''::bytea),
             ('one byte too few',                 substr(idem_fingerprint('x'::text), 1, 16)),
             ('one byte too many',                idem_fingerprint('x'::text) || '\x00'),
             ('a fingerprint of version 0',       set_byte(idem_fingerprint('x'::text), 0, 0)),
             ('one of a version to come',         set_byte(idem_fingerprint('x'::text), 0, 3)),
             ('somebody else''s hash',            sha256('x'))) AS bad (what, fingerprint)
ORDER BY function, what;

-- Owners

SELECT throws_ok($$SELECT idem_acquire('outbox', 'send', 'e', owner => repeat('o', 256))$$, '22023',
    'owner is too long');
SELECT throws_ok($$SELECT idem_acquire('outbox', 'send', 'e', owner => '')$$, '22023', 'owner must not be empty',
    'idem_acquire: an owner whose name is empty would be everybody');

SELECT is_empty('TABLE inbox', 'none of this wrote anything');
SELECT is_empty('TABLE outbox', 'in no table');

-- The longest that are allowed

SELECT is(outcome, 'acquired', 'the longest identity')
FROM idem_acquire('outbox', repeat('h', 255), repeat('e', 1024), repeat('b', 255), owner => repeat('o', 255));
SELECT is(ROW(octet_length(handler), octet_length(event_id), octet_length(batch), octet_length(owner), key)::text,
    ROW(255, 1024, 255, 255, idem_key(repeat('h', 255), repeat('e', 1024), repeat('b', 255)))::text, 'is kept whole')
FROM outbox;
SELECT is(outcome, 'acquired', 'its owner is known by all of the name')
FROM idem_acquire('outbox', repeat('h', 255), repeat('e', 1024), repeat('b', 255), owner => repeat('o', 255));
SELECT is(outcome, 'busy', 'and not by a part of it')
FROM idem_acquire('outbox', repeat('h', 255), repeat('e', 1024), repeat('b', 255), owner => repeat('o', 254));
SELECT lives_ok($$SELECT idem_commit('outbox', repeat('h', 255), repeat('e', 1024), repeat('b', 255), attempt => 1)$$,
    'and settled');
SELECT is(state, 'done', 'it is found')
FROM idem_lookup('outbox', repeat('h', 255), repeat('e', 1024), repeat('b', 255));
SELECT is(outcome, 'acquired', 'the shortest identity') FROM idem_accept('outbox', 'h', 'e', 'b');

-- Defaults: null is the same as left out

SELECT is(outcome, 'acquired', 'nulls are as good as nothing')
FROM idem_acquire('outbox', 'send', 'nulls', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
SELECT is(num_nulls(batch, fingerprint, payload, owner), 4, 'nulls are kept as nulls')
FROM outbox WHERE event_id = 'nulls';
SELECT lives_ok($$SELECT idem_extend('outbox', 'send', 'nulls', NULL, NULL, NULL)$$, 'idem_extend with nulls');
SELECT lives_ok($$SELECT idem_commit('outbox', 'send', 'nulls', NULL, NULL, NULL, NULL)$$, 'idem_commit with nulls');
SELECT is(outcome, 'acquired', 'idem_accept with nulls')
FROM idem_accept('outbox', 'send', 'accepted', NULL, NULL, NULL, NULL);
SELECT is(outcome, 'backoff', 'idem_release with nulls')
FROM idem_release('outbox', 'send', 'released', NULL, NULL, NULL, NULL);

SELECT * FROM finish();
ROLLBACK;
