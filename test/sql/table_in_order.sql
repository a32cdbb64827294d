-- What is not a dedup table, or is one no more in order, is refused; and what does not matter is not.
BEGIN;
SELECT plan(77);

SELECT idem_create_table('inbox', generations => 3) \g /dev/null
SELECT idem_acquire('inbox', 'book', 'e') \g /dev/null
SELECT idem_commit('inbox', 'book', 'e') \g /dev/null
CREATE TABLE handlers (name text PRIMARY KEY);
INSERT INTO handlers VALUES ('book');
CREATE FUNCTION trigger_function() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;

-- What a claim on the table says once the change is made; the change is undone.
CREATE FUNCTION pg_temp.after(change text, call text DEFAULT 'idem_accept(''inbox'', ''book'', ''e'')')
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    state text;
    message text;
    detail text;
BEGIN
    EXECUTE change;
    EXECUTE 'SELECT outcome FROM ' || call INTO answer;
    RAISE EXCEPTION SQLSTATE 'XX999';
EXCEPTION
    WHEN SQLSTATE 'XX999' THEN
        RETURN answer;
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL;
        RETURN concat_ws(' | ', state, message, nullif(detail, ''));
END $$;

SELECT is(pg_temp.after('SELECT 1'), 'duplicate', 'unchanged, it works');

-- Not a dedup table at all

SELECT is(pg_temp.after(change, 'idem_accept(''other'', ''book'', ''e'')'), answer, change)
FROM (VALUES
    (1, 'CREATE TABLE other (LIKE inbox)',                                 '42809 | "other" is not a dedup table'),
    (2, 'CREATE TABLE other (LIKE inbox) PARTITION BY LIST (slot)',        '42809 | "other" is not a dedup table'),
    (3, 'CREATE TABLE other OF idem_event',                                '42809 | "other" is not a dedup table'),
    (4, 'CREATE VIEW other AS SELECT * FROM inbox',                        '42809 | "other" is not a dedup table'),
    (5, 'CREATE MATERIALIZED VIEW other AS SELECT * FROM inbox',           '42809 | "other" is not a dedup table'),
    (6, 'CREATE SEQUENCE other',                                           '42809 | "other" is not a dedup table'),
    (7, 'CREATE TYPE other AS (key uuid)',                                 '42809 | "other" is not a dedup table'),
    (8, 'CREATE FOREIGN TABLE other (key uuid) SERVER nowhere',            '42809 | "other" is not a dedup table'),
    (9, 'CREATE TEMP TABLE other OF idem_event PARTITION BY LIST (slot)',
        '42809 | "other" is not a dedup table')) AS look_alike (n, change, answer)
ORDER BY n;
SELECT is(pg_temp.after($$CREATE TABLE other OF idem_event
            (key WITH OPTIONS NOT NULL, state WITH OPTIONS NOT NULL, attempt WITH OPTIONS NOT NULL,
             first_seen_at WITH OPTIONS NOT NULL, expires_at WITH OPTIONS NOT NULL, failures WITH OPTIONS NOT NULL,
             slot WITH OPTIONS NOT NULL, handler WITH OPTIONS NOT NULL, event_id WITH OPTIONS NOT NULL)
            PARTITION BY LIST (slot);
        CREATE TABLE other_g0 PARTITION OF other (PRIMARY KEY (key)) FOR VALUES IN (0);
        CREATE TABLE other_g1 PARTITION OF other (PRIMARY KEY (key)) FOR VALUES IN (1)$$,
        'idem_accept(''other'', ''book'', ''e'')'),
    '42809 | dedup table "other" is not registered', 'one made by hand, and not registered');
SELECT is(pg_temp.after('ALTER TABLE inbox NOT OF'), '42809 | "inbox" is not a dedup table', 'no more OF idem_event');
SELECT is(pg_temp.after('DELETE FROM idem_registry'), '42809 | dedup table "inbox" is not registered',
    'its registration is lost');
SELECT is(pg_temp.after('DELETE FROM idem_control'), '42809 | dedup table "inbox" is not registered',
    'its position is lost');

-- Its partitions

SELECT is(pg_temp.after(change), '42809 | dedup table "inbox" is not in order | ' || detail, change)
FROM (VALUES
    (1, 'DROP TABLE inbox_g0',                                                   'It has no partition for slot 0.'),
    (2, 'DROP TABLE inbox_g1',                                                   'It has no partition for slot 1.'),
    (3, 'DROP TABLE inbox_g2',
        'It has 2 partitions, but was registered with 3.'),
    (4, 'ALTER TABLE inbox DETACH PARTITION inbox_g0',                           'It has no partition for slot 0.'),
    (5, 'ALTER TABLE inbox DETACH PARTITION inbox_g2',
        'It has 2 partitions, but was registered with 3.'),
    (6, 'DROP TABLE inbox_g0, inbox_g1, inbox_g2',
        'It has 0 partitions; 2 to 64 are allowed.'),
    (7, 'DROP TABLE inbox_g1, inbox_g2',
        'It has 1 partitions; 2 to 64 are allowed.'),
    (8, 'CREATE TABLE more PARTITION OF inbox (PRIMARY KEY (key)) FOR VALUES IN (3)',
        'It has 4 partitions, but was registered with 3.'),
    (9, 'CREATE TABLE more PARTITION OF inbox (PRIMARY KEY (key)) FOR VALUES IN (7)',
        'It has no partition for slot 3.'),
    (10, 'CREATE TABLE more PARTITION OF inbox (PRIMARY KEY (key)) FOR VALUES IN (-1)',
        'It has no partition for slot 0.'),
    (11, 'CREATE TABLE more PARTITION OF inbox (PRIMARY KEY (key)) FOR VALUES IN (3, 4)',
        'Its partitions must hold one value of "slot" each.'),
    (12, 'CREATE TABLE more PARTITION OF inbox DEFAULT',
        'Its partitions must hold one value of "slot" each.'),
    (13, 'CREATE TABLE more PARTITION OF inbox FOR VALUES IN (NULL)',
        'Its partitions must hold one value of "slot" each.'),
    (14, 'DROP TABLE inbox_g1; CREATE TABLE inbox_g1 PARTITION OF inbox FOR VALUES IN (1) PARTITION BY LIST (attempt)',
         'Partition "inbox_g1" is not an ordinary table.'),
    (15, 'DROP TABLE inbox_g1; CREATE FOREIGN TABLE inbox_g1 PARTITION OF inbox FOR VALUES IN (1) SERVER nowhere',
         'Partition "inbox_g1" is not an ordinary table.'),
    (16, 'ALTER TABLE inbox_g0 SET UNLOGGED',
        'Some of its partitions are unlogged and some are not, such as "inbox_g1": after a crash it would remember some events and forget others.'),
    (17, 'ALTER TABLE inbox_g2 SET UNLOGGED',
        'Some of its partitions are unlogged and some are not, such as "inbox_g2": after a crash it would remember some events and forget others.')) AS partitions (n, change, detail)
ORDER BY n;

SELECT is(pg_temp.after('ALTER TABLE inbox_g0 SET UNLOGGED; ALTER TABLE inbox_g1 SET UNLOGGED; ALTER TABLE inbox_g2 SET UNLOGGED'),
    'duplicate', 'all partitions unlogged');

-- What idem's writes would pass by

SELECT is(pg_temp.after(change), '42809 | dedup table "inbox" is not in order | ' || detail, change)
FROM (VALUES
    (1, 'ALTER TABLE inbox ENABLE ROW LEVEL SECURITY',
        'Row-level security is enabled on "inbox", and idem does not apply it.'),
    (2, 'ALTER TABLE inbox_g2 ENABLE ROW LEVEL SECURITY',
        'Row-level security is enabled on "inbox_g2", and idem does not apply it.'),
    (3, 'CREATE RULE rule AS ON INSERT TO inbox DO INSTEAD NOTHING',
        '"inbox" has rules, and idem does not apply them.'),
    (4, 'CREATE RULE rule AS ON UPDATE TO inbox_g2 DO ALSO NOTHING',
        '"inbox_g2" has rules, and idem does not apply them.'),
    (5, 'CREATE TRIGGER t BEFORE INSERT ON inbox FOR EACH ROW EXECUTE FUNCTION trigger_function()',
        '"inbox" has triggers or is referenced by a foreign key, and idem fires none.'),
    (6, 'CREATE TRIGGER t AFTER UPDATE ON inbox FOR EACH STATEMENT EXECUTE FUNCTION trigger_function()',
        '"inbox" has triggers or is referenced by a foreign key, and idem fires none.'),
    (7, 'CREATE TRIGGER t AFTER DELETE ON inbox_g1 FOR EACH ROW EXECUTE FUNCTION trigger_function()',
        '"inbox_g1" has triggers or is referenced by a foreign key, and idem fires none.'),
    (8, 'CREATE TABLE referencing (key uuid REFERENCES inbox_g1)',
        '"inbox_g1" has triggers or is referenced by a foreign key, and idem fires none.'),
    (9, 'ALTER TABLE inbox ADD FOREIGN KEY (handler) REFERENCES handlers',
        '"inbox" has triggers or is referenced by a foreign key, and idem fires none.'),
    (10, 'ALTER TABLE inbox_g1 ADD FOREIGN KEY (handler) REFERENCES handlers',
        '"inbox_g1" has triggers or is referenced by a foreign key, and idem fires none.'))
    AS passed_by (n, change, detail)
ORDER BY n;

-- What decides who was first: the primary key of each partition, and nothing else

SELECT is(pg_temp.after(change), '42809 | dedup table "inbox" is not in order | ' || detail, change)
FROM (VALUES
    (1, 'ALTER TABLE inbox_g2 DROP CONSTRAINT inbox_g2_pkey',              '"inbox_g2" has no primary key.'),
    (2, 'ALTER TABLE inbox_g2 DROP CONSTRAINT inbox_g2_pkey; CREATE UNIQUE INDEX ON inbox_g2 (key)',
        '"inbox_g2" has no primary key.'),
    (3, 'ALTER TABLE inbox_g2 DROP CONSTRAINT inbox_g2_pkey; ALTER TABLE inbox_g2 ADD PRIMARY KEY (key, slot)',
        'The primary key of "inbox_g2" is not an ordinary one on (key).'),
    (4, 'ALTER TABLE inbox_g2 DROP CONSTRAINT inbox_g2_pkey; ALTER TABLE inbox_g2 ADD PRIMARY KEY (event_id)',
        'The primary key of "inbox_g2" is not an ordinary one on (key).'),
    (5, 'CREATE UNIQUE INDEX event ON inbox_g2 (event_id)',
        '"inbox_g2" has another unique or exclusion constraint, "event".'),
    (6, 'CREATE UNIQUE INDEX event ON inbox_g2 (key, event_id)',
        '"inbox_g2" has another unique or exclusion constraint, "event".'),
    (7, 'CREATE UNIQUE INDEX event ON inbox_g2 ((attempt + 1))',
        '"inbox_g2" has another unique or exclusion constraint, "event".'),
    (8, 'ALTER TABLE inbox_g2 ADD CONSTRAINT event EXCLUDE USING hash (event_id WITH =)',
        '"inbox_g2" has another unique or exclusion constraint, "event".'),
    (9, 'ALTER TABLE inbox ADD CONSTRAINT event UNIQUE (slot, event_id)',
        '"inbox_g0" has another unique or exclusion constraint, "inbox_g0_slot_event_id_key".'))
    AS keys (n, change, detail)
ORDER BY n;
SELECT matches(pg_temp.after('ALTER TABLE inbox_g2 DROP CONSTRAINT inbox_g2_pkey;
                              ALTER TABLE inbox_g2 ADD PRIMARY KEY (key) DEFERRABLE'),
    '^42809 \| dedup table "inbox" is not in order \|', 'a primary key that may be checked later');
SELECT is(pg_temp.after('ALTER TABLE inbox ALTER expires_at DROP NOT NULL'),
    '42809 | dedup table "inbox" is not in order | Column "expires_at" of "inbox_g0" is not NOT NULL.',
    'a column that may be null');

-- Every function refuses, not only idem_accept

SELECT is(pg_temp.after('ALTER TABLE inbox_g2 ENABLE ROW LEVEL SECURITY', call),
    '42809 | dedup table "inbox" is not in order | '
    'Row-level security is enabled on "inbox_g2", and idem does not apply it.', call)
FROM unnest(ARRAY['idem_acquire(''inbox'', ''book'', ''e'')', 'idem_commit(''inbox'', ''book'', ''e'') AS outcome',
                  'idem_release(''inbox'', ''book'', ''e'')', 'idem_extend(''inbox'', ''book'', ''e'') AS outcome',
                  '(SELECT state AS outcome FROM idem_lookup(''inbox'', ''book'', ''e'')) AS l',
                  'idem_attach_table(''inbox'') AS outcome']) call;

-- What does not matter

SELECT is(pg_temp.after(change, call), 'duplicate', change)
FROM (VALUES
    (1, 'ALTER TABLE inbox RENAME TO renamed',                      'idem_accept(''renamed'', ''book'', ''e'')'),
    (2, 'CREATE SCHEMA app; ALTER TABLE inbox SET SCHEMA app',      'idem_accept(''app.inbox'', ''book'', ''e'')'),
    (3, 'ALTER TABLE inbox_g0 RENAME TO "Renamed.g7"',              'idem_accept(''inbox'', ''book'', ''e'')'),
    (4, 'CREATE SCHEMA app; ALTER TABLE inbox_g0 SET SCHEMA app',   'idem_accept(''inbox'', ''book'', ''e'')'),
    (5, 'CREATE ROLE regress_idem_owner; ALTER TABLE inbox OWNER TO regress_idem_owner',
        'idem_accept(''inbox'', ''book'', ''e'')'),
    (6, 'CREATE INDEX ON inbox (handler, event_id)',                'idem_accept(''inbox'', ''book'', ''e'')'),
    (7, 'CREATE UNIQUE INDEX ON inbox_g0 (key)',                    'idem_accept(''inbox'', ''book'', ''e'')'),
    (8, 'ALTER TABLE inbox_g0 SET (fillfactor = 50)',               'idem_accept(''inbox'', ''book'', ''e'')'),
    (9, 'ALTER TABLE inbox_g0 REPLICA IDENTITY USING INDEX inbox_g0_pkey', 'idem_accept(''inbox'', ''book'', ''e'')'),
    (10, 'CREATE VIEW shown AS SELECT * FROM inbox',                'idem_accept(''inbox'', ''book'', ''e'')'),
    (11, 'ALTER TABLE inbox DETACH PARTITION inbox_g0; ALTER TABLE inbox ATTACH PARTITION inbox_g0 FOR VALUES IN (0)',
         'idem_accept(''inbox'', ''book'', ''e'')'),
    (12, 'ALTER TABLE inbox ENABLE ROW LEVEL SECURITY; ALTER TABLE inbox DISABLE ROW LEVEL SECURITY',
         'idem_accept(''inbox'', ''book'', ''e'')')) AS harmless (n, change, call)
ORDER BY n;

-- Columns are found by their names, whatever their order in a partition

SELECT is(pg_temp.after($$CREATE TABLE attached (LIKE inbox_g0 INCLUDING ALL); ALTER TABLE attached ADD gone int;
        ALTER TABLE attached DROP gone; DROP TABLE inbox_g0;
        ALTER TABLE inbox ATTACH PARTITION attached FOR VALUES IN (0)$$),
    '42809 | "attached" has not the columns of type idem_event',
    'a partition which once had another column is refused');

CREATE TABLE reordered (event_id text COLLATE "C" NOT NULL, ordering text COLLATE "C", together boolean, slot smallint NOT NULL, extra jsonb, payload jsonb, error
    text, result jsonb, owner text COLLATE "C", fingerprint bytea, batch text COLLATE "C", handler text COLLATE "C"
    NOT NULL, failures integer NOT NULL, expires_at timestamptz NOT NULL, settled_at timestamptz, claimable_at
    timestamptz, claimed_at timestamptz, first_seen_at timestamptz NOT NULL, attempt integer NOT NULL, state
    idem_state NOT NULL, key uuid PRIMARY KEY);
DROP TABLE inbox_g0;
ALTER TABLE inbox ATTACH PARTITION reordered FOR VALUES IN (0);
SELECT is(outcome, 'acquired', 'a partition whose columns are in another order')
FROM idem_acquire('inbox', 'book', 'e', 'b', idem_fingerprint('x'::text), payload => '{}', owner => 'token-1');
SELECT lives_ok($$SELECT idem_commit('inbox', 'book', 'e', 'b', result => '7')$$, 'is written');
SELECT is(ROW(key = idem_key('book', 'e', 'b'), state, attempt, failures, slot, handler, event_id, batch,
        fingerprint = idem_fingerprint('x'::text),
              owner, result, num_nulls(claimed_at, claimable_at, error, payload, extra), expires_at - settled_at)::text,
    '(t,done,1,0,0,book,e,b,t,token-1,7,5,"30 days")', 'column by column') FROM reordered;
SELECT is(outcome, 'conflict', 'and read') FROM idem_acquire('inbox', 'book', 'e', 'b', idem_fingerprint('y'::text));
SELECT is(idem_lookup('inbox', 'book', 'e', 'b')::text, i::text, 'and told in the order of idem_event') FROM inbox i;

SELECT * FROM finish();
ROLLBACK;
