-- idem_newer: a table's own trigger lets only newer news overwrite what is known, by the order of a version or a time.
BEGIN;
SELECT plan(38);

CREATE TABLE customer (id int PRIMARY KEY, name text, version bigint, note text);
CREATE TRIGGER newer BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION idem_newer('version');

CREATE FUNCTION pg_temp.affected(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    affected bigint;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN affected;
END $$;

SELECT is(pg_temp.affected(format('INSERT INTO customer (id, name, version) VALUES (1, %L, %s)
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, version = EXCLUDED.version', name, version)), affected, what)
FROM (VALUES (1, 'first', 5, 1::bigint, 'the first news is inserted'), (2, 'second', 7, 1, 'newer news overwrites it'),
             (3, 'old', 6, 0, 'older news affects no row'), (4, 'other', 7, 0, 'nor does the same version again'),
             (5, 'third', 10, 1, 'versions are compared as numbers, not as text')) AS n (number, name, version, affected, what)
ORDER BY number;
SELECT results_eq('SELECT name, version FROM customer', $$VALUES ('third', 10::bigint)$$, 'the newest stays');
SELECT is(pg_temp.affected($$UPDATE customer SET name = 'x', version = 9 WHERE id = 1$$), 0::bigint, 'UPDATE: older');
SELECT is(pg_temp.affected($$UPDATE customer SET name = 'fourth', version = 11 WHERE id = 1$$), 1::bigint, 'UPDATE: newer');
SELECT is_empty($$UPDATE customer SET version = 11 RETURNING id$$, 'UPDATE: the same returns no row');
SELECT is(pg_temp.affected($$MERGE INTO customer c USING (VALUES (1, 'fifth', 12)) n (id, name, version) ON c.id = n.id
    WHEN MATCHED THEN UPDATE SET name = n.name, version = n.version$$), 1::bigint, 'MERGE: newer');
SELECT lives_ok($$MERGE INTO customer c USING (VALUES (1, 'old', 3)) n (id, name, version) ON c.id = n.id
    WHEN MATCHED THEN UPDATE SET name = n.name, version = n.version$$, 'MERGE: older');
SELECT results_eq('SELECT name, version FROM customer', $$VALUES ('fifth', 12::bigint)$$, 'changes nothing');

-- What is no news

SELECT is(pg_temp.affected($$UPDATE customer SET note = 'call back'$$), 1::bigint,
    'an update which does not set the version is none of its business');
SELECT results_eq('SELECT version, note FROM customer', $$VALUES (12::bigint, 'call back')$$, 'and is made');
SELECT is(pg_temp.affected($$UPDATE customer SET id = 2$$), 1::bigint, 'nor is one of the key');

-- Nulls

SELECT throws_ok($$UPDATE customer SET version = NULL$$, '22004', 'column "version" of table "customer" must not be set to null',
    'news without a version is an error');
INSERT INTO customer VALUES (3, 'known', NULL);
SELECT throws_ok($$UPDATE customer SET name = 'x', version = NULL WHERE id = 3$$, '22004', NULL, 'also where none is known');
SELECT is(pg_temp.affected($$UPDATE customer SET note = 'x' WHERE id = 3$$), 1::bigint, 'what is no news may be changed');
SELECT is(pg_temp.affected($$UPDATE customer SET version = -1 WHERE id = 3$$), 1::bigint, 'any version is newer than none');

-- A version set by a trigger before it

CREATE FUNCTION back() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.version := NEW.version - 1; RETURN NEW; END$$;
CREATE TRIGGER first BEFORE UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION back();
SELECT is(pg_temp.affected($$UPDATE customer SET note = 'y' WHERE id = 3$$), 0::bigint, 'is judged');
DROP TRIGGER first ON customer;

-- Types

CREATE TABLE typed (t timestamptz DEFAULT '2026-01-01', d date DEFAULT '2026-01-01', n numeric DEFAULT 9.5,
                    s text COLLATE "C" DEFAULT 'b', v int[] DEFAULT '{1,9}', p point DEFAULT '(0,0)');
INSERT INTO typed DEFAULT VALUES;
CREATE TRIGGER t BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_newer('t');
CREATE TRIGGER d BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_newer('d');
CREATE TRIGGER n BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_newer('n');
CREATE TRIGGER s BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_newer('s');
CREATE TRIGGER v BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_newer('v');
SELECT is(pg_temp.affected(format('UPDATE typed SET %I = %L', name, value)), affected, format('%s: %s', name, value))
FROM (VALUES (1, 't', '2026-01-01 00:00:00.000001+00', 1::bigint), (2, 't', '2025-12-31', 0), (3, 'd', '2026-01-02', 1),
             (4, 'd', '2026-01-02', 0), (5, 'n', '10', 1), (6, 'n', '10.00', 0), (7, 's', 'B', 0), (8, 's', 'c', 1),
             (9, 'v', '{1,10}', 1), (10, 'v', '{1,9,9}', 0)) AS t (number, name, value, affected)
ORDER BY number;

-- What its maker got wrong

CREATE TABLE wrong (p point DEFAULT '(0,0)', v int DEFAULT 1, note text);
INSERT INTO wrong DEFAULT VALUES;
CREATE FUNCTION pg_temp.trigger_says(arguments text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
BEGIN
    EXECUTE 'CREATE OR REPLACE TRIGGER wrong BEFORE UPDATE ON wrong FOR EACH ROW EXECUTE FUNCTION idem_newer(' || arguments || ')';
    UPDATE wrong SET note = 'x';
    RETURN 'nothing';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT;
    RETURN SQLSTATE || ': ' || message;
END $$;
SELECT is(pg_temp.trigger_says(arguments), said, said)
FROM (VALUES
    (1, '', '22023: trigger "wrong" names no column'),
    (2, $$'w'$$, '22023: trigger "wrong" names column "w", which table "wrong" does not have'),
    (3, $$'v', 'note'$$, '22023: trigger "wrong" names more than a column'),
    (4, $$'p'$$, '22023: column "p" of table "wrong" has no order')) AS w (number, arguments, said)
ORDER BY number;
SELECT is(pg_temp.trigger_says($$'v'$$), 'nothing', 'and right');
CREATE TRIGGER late AFTER UPDATE ON wrong FOR EACH ROW EXECUTE FUNCTION idem_newer('v');
SELECT throws_ok('UPDATE wrong SET v = 2', '39P01',
    'idem_newer can be called only as a trigger BEFORE UPDATE FOR EACH ROW', 'AFTER UPDATE');
DROP TRIGGER late ON wrong;
CREATE TRIGGER whole BEFORE UPDATE ON wrong EXECUTE FUNCTION idem_newer('v');
SELECT throws_ok('UPDATE wrong SET v = 2', '39P01',
    'idem_newer can be called only as a trigger BEFORE UPDATE FOR EACH ROW', 'FOR EACH STATEMENT');
DROP TRIGGER whole ON wrong;
CREATE TRIGGER early BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION idem_newer('v');
SELECT throws_ok('INSERT INTO wrong DEFAULT VALUES', '39P01',
    'idem_newer can be called only as a trigger BEFORE UPDATE FOR EACH ROW', 'BEFORE INSERT');

SELECT * FROM finish();
ROLLBACK;
