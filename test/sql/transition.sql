-- idem_transition: a table's own trigger lets its rows make the listed steps only, and leaves a step which is made
-- already out, so that whoever acts on the rows an UPDATE affects acts once.
BEGIN;
SELECT plan(63);

CREATE TABLE orders (id int PRIMARY KEY, status text, paid_at text, note text);
CREATE TRIGGER steps BEFORE UPDATE ON orders FOR EACH ROW
    EXECUTE FUNCTION idem_transition('status', 'new > paid', 'paid>refunded', '  paid   >   in transit  ');
INSERT INTO orders VALUES (1, 'new'), (2, 'new'), (3, NULL);

-- How many rows a statement affects.
CREATE FUNCTION pg_temp.affected(statement text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    affected bigint;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS affected = ROW_COUNT;
    RETURN affected;
END $$;

-- The error of a statement: message, detail, hint and column, without what is not there.
CREATE FUNCTION pg_temp.said(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    message text;
    detail text;
    hint text;
    place text;
BEGIN
    RETURN pg_temp.affected(statement);
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT,
        place = COLUMN_NAME;
    RETURN concat_ws(E'\n', SQLSTATE, message, nullif(detail, ''), nullif(hint, ''), nullif(place, ''));
END $$;

-- Steps

SELECT is(pg_temp.affected($$UPDATE orders SET status = 'paid', paid_at = 'first' WHERE id = 1$$), 1::bigint,
    'a listed step is made');
SELECT is(pg_temp.affected($$UPDATE orders SET status = 'paid', paid_at = 'second' WHERE id = 1$$), 0::bigint,
    'the same again affects no row');
SELECT results_eq('SELECT status, paid_at FROM orders WHERE id = 1', $$VALUES ('paid', 'first')$$,
    'and changes nothing, whatever else it sets');
SELECT is_empty($$UPDATE orders SET status = 'paid' WHERE id = 1 RETURNING id$$, 'nor returns a row');
SELECT is(pg_temp.said($$UPDATE orders SET status = 'new' WHERE id = 1$$), 'ID005
column "status" of table "orders" may not go from "paid" to "new"
Allowed are: new > paid, paid>refunded,   paid   >   in transit  .
status', 'a step that is not listed is an error which names both states, the column and the steps');
SELECT is(pg_temp.said($$UPDATE orders SET status = 'refunded' WHERE id = 2$$), 'ID005
column "status" of table "orders" may not go from "new" to "refunded"
Allowed are: new > paid, paid>refunded,   paid   >   in transit  .
status', 'and so is one which leaves a state out');
SELECT is(pg_temp.affected($$UPDATE orders SET status = 'in transit' WHERE id = 1$$), 1::bigint,
    'blanks around a state do not count, those within do');
SELECT is(split_part(pg_temp.said($$UPDATE orders SET status = 'paid' WHERE id = 1$$), E'\n', 1), 'ID005',
    'old news is an error where no step leads back');
SELECT is(split_part(pg_temp.said($$UPDATE orders SET status = NULL WHERE id = 2$$), E'\n', 2),
    'column "status" of table "orders" may not go from "new" to null', 'null is a state like others');
SELECT is(split_part(pg_temp.said($$UPDATE orders SET status = 'new' WHERE id = 3$$), E'\n', 2),
    'column "status" of table "orders" may not go from null to "new"', 'from null, too');
SELECT is(pg_temp.affected($$UPDATE orders SET status = NULL, note = 'x' WHERE id = 3$$), 0::bigint,
    'from null to null is a state that is there already');

-- What does not concern the column

SELECT is(pg_temp.affected($$UPDATE orders SET note = 'call back' WHERE id = 1$$), 1::bigint,
    'an update which does not set the state is none of its business');
SELECT is(note, 'call back', 'and is made') FROM orders WHERE id = 1;
SELECT is(pg_temp.affected($$UPDATE orders SET id = id + 10$$), 3::bigint, 'nor is one of many rows');
SELECT is(pg_temp.affected($$DELETE FROM orders WHERE id = 13$$), 1::bigint, 'nor a DELETE');
SELECT is(pg_temp.affected($$INSERT INTO orders VALUES (4, 'refunded'), (5, 'new'), (6, 'paid')$$), 3::bigint,
    'a row begins in any state');
SELECT is(pg_temp.affected($$UPDATE orders SET status = 'paid' WHERE id IN (5, 6)$$), 1::bigint,
    'of many rows those are affected which make a step');

CREATE TABLE listed (id int PRIMARY KEY, status text, note text);
CREATE TRIGGER steps BEFORE UPDATE OF status ON listed FOR EACH ROW
    EXECUTE FUNCTION idem_transition('status', 'new > paid');
INSERT INTO listed VALUES (1, 'new');
SELECT is(pg_temp.affected($$UPDATE listed SET note = 'x'$$), 1::bigint, 'UPDATE OF: others are made');
SELECT is(pg_temp.affected($$UPDATE listed SET status = 'paid'$$), 1::bigint, 'UPDATE OF: a step is made');
SELECT is(pg_temp.affected($$UPDATE listed SET status = 'paid', note = 'y'$$), 0::bigint, 'UPDATE OF: once');

-- A trigger before it which sets the state is seen, one that a statement's SET list does not show.
CREATE FUNCTION pay() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN NEW.status := NEW.note; RETURN NEW; END$$;
CREATE TRIGGER first BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION pay();
SELECT is(split_part(pg_temp.said($$UPDATE orders SET note = 'new' WHERE id = 6$$), E'\n', 2),
    'column "status" of table "orders" may not go from "paid" to "new"', 'a state set by a trigger is judged');
SELECT is(pg_temp.affected($$UPDATE orders SET note = 'refunded' WHERE id = 6$$), 1::bigint, 'and may make a step');
DROP TRIGGER first ON orders;

-- A state may stay where that is listed

CREATE TABLE staying (status text, note text);
CREATE TRIGGER steps BEFORE UPDATE ON staying FOR EACH ROW
    EXECUTE FUNCTION idem_transition('status', 'new > paid', 'paid > paid');
INSERT INTO staying VALUES ('new');
SELECT is(pg_temp.affected($$UPDATE staying SET status = 'new', note = 'x'$$), 0::bigint, 'one state does not');
SELECT is(pg_temp.affected($$UPDATE staying SET status = 'paid', note = 'y'$$), 1::bigint, 'makes a step');
SELECT is(pg_temp.affected($$UPDATE staying SET status = 'paid', note = 'z'$$), 1::bigint, 'and stays');
SELECT is(note, 'z', 'with what else was set') FROM staying;

-- Ways to update

SELECT results_eq($$WITH moved AS (UPDATE orders SET status = 'paid' WHERE id = 12 RETURNING id)
                    INSERT INTO listed SELECT id, 'new' FROM moved RETURNING id$$, ARRAY[12], 'an effect in one statement');
SELECT is_empty($$WITH moved AS (UPDATE orders SET status = 'paid' WHERE id = 12 RETURNING id)
                  INSERT INTO listed SELECT id, 'new' FROM moved RETURNING id$$, 'happens once');
SELECT is(pg_temp.affected($$INSERT INTO orders VALUES (7, 'new') ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status$$),
    1::bigint, 'INSERT … ON CONFLICT: inserted');
SELECT is(pg_temp.affected($$INSERT INTO orders VALUES (7, 'paid') ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status$$),
    1::bigint, 'makes a step');
SELECT is(pg_temp.affected($$INSERT INTO orders VALUES (7, 'paid') ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status$$),
    0::bigint, 'once');
SELECT is(split_part(pg_temp.said($$INSERT INTO orders VALUES (7, 'new')
    ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status$$), E'\n', 1), 'ID005', 'and none that is not listed');
SELECT is(pg_temp.affected($$MERGE INTO orders o USING (VALUES (7, 'refunded')) n (id, status) ON o.id = n.id
    WHEN MATCHED THEN UPDATE SET status = n.status$$), 1::bigint, 'MERGE: makes a step');
SELECT is(status, 'refunded', 'which is there') FROM orders WHERE id = 7;
SELECT lives_ok($$MERGE INTO orders o USING (VALUES (7, 'refunded')) n (id, status) ON o.id = n.id
    WHEN MATCHED THEN UPDATE SET status = n.status, note = 'again'$$, 'MERGE again');
SELECT is(note, NULL, 'changes nothing') FROM orders WHERE id = 7;

CREATE TABLE parted (note text, id int, status text) PARTITION BY LIST (status);
CREATE TABLE parted_new PARTITION OF parted FOR VALUES IN ('new');
CREATE TABLE parted_paid (status text, gone int, id int, note text);
ALTER TABLE parted_paid DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION parted_paid FOR VALUES IN ('paid', 'refunded');
CREATE TRIGGER steps BEFORE UPDATE ON parted FOR EACH ROW
    EXECUTE FUNCTION idem_transition('status', 'new > paid', 'paid > refunded');
INSERT INTO parted VALUES ('', 1, 'new');
SELECT is(pg_temp.affected($$UPDATE parted SET status = 'paid'$$), 1::bigint, 'a step leads to another partition');
SELECT is(pg_temp.affected($$UPDATE parted SET status = 'paid', note = 'x'$$), 0::bigint, 'once');
SELECT is(split_part(pg_temp.said($$UPDATE parted SET status = 'new'$$), E'\n', 1), 'ID005', 'and not back');
SELECT is(pg_temp.affected($$UPDATE parted SET status = 'refunded'$$), 1::bigint, 'or stays in it');

-- Types

CREATE TYPE colour AS ENUM ('red', 'green > blue', 'null');
CREATE DOMAIN word AS text CHECK (VALUE <> 'never');
CREATE TABLE typed (e colour DEFAULT 'red', c char(8) DEFAULT 'new', v varchar(8) DEFAULT 'new', i int DEFAULT 1,
                    b boolean DEFAULT false, d word DEFAULT 'new', "Odd name" text DEFAULT '');
INSERT INTO typed DEFAULT VALUES;
CREATE TRIGGER e BEFORE UPDATE ON typed FOR EACH ROW
    EXECUTE FUNCTION idem_transition('e', 'red > "green > blue"', '"green > blue" > "null"', '"null" > null');
CREATE TRIGGER c BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('c', 'new > paid');
CREATE TRIGGER v BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('v', 'new > paid');
CREATE TRIGGER i BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('i', '1 > 2');
CREATE TRIGGER b BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('b', 'f > t');
CREATE TRIGGER d BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('d', 'new > paid');
CREATE TRIGGER n BEFORE UPDATE ON typed FOR EACH ROW EXECUTE FUNCTION idem_transition('Odd name', '"" > "a""b"');
SELECT is(pg_temp.affected(format('UPDATE typed SET %I = %s', name, value)), affected, format('%s: %s', name, value))
FROM (VALUES (1, 'e', $$'green > blue'$$, 1::bigint), (2, 'e', $$'null'$$, 1), (3, 'e', 'NULL', 1), (4, 'e', 'NULL', 0),
             (5, 'c', $$'paid'$$, 1), (6, 'c', $$'paid   '$$, 0), (7, 'v', $$'paid'$$, 1), (8, 'i', '2', 1),
             (9, 'i', '2', 0), (10, 'b', 'true', 1), (11, 'd', $$'paid'$$, 1), (12, 'Odd name', $$'a"b'$$, 1))
     AS t (number, name, value, affected)
ORDER BY number;

-- What its maker got wrong shows when it fires, also where the update does not concern the column

CREATE TABLE wrong (status text, twice text GENERATED ALWAYS AS (status || status) STORED, note text);
INSERT INTO wrong VALUES ('new');
CREATE FUNCTION pg_temp.trigger_says(definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    said text;
BEGIN
    EXECUTE 'CREATE TRIGGER wrong ' || definition;
    said := pg_temp.said($x$UPDATE wrong SET note = 'x'$x$);
    DROP TRIGGER IF EXISTS wrong ON wrong;
    RETURN said;
END $$;
SELECT is(pg_temp.trigger_says('BEFORE UPDATE ON wrong FOR EACH ROW EXECUTE FUNCTION idem_transition(' || arguments || ')'),
    said, arguments)
FROM (VALUES
    (1, '', '22023
trigger "wrong" names no column
The first argument of idem_transition is the name of a column.'),
    (2, $$'state', 'new > paid'$$, '22023
trigger "wrong" names column "state", which table "wrong" does not have
The first argument of idem_transition is the name of a column.'),
    (3, $$'ctid', 'new > paid'$$, '22023
trigger "wrong" names column "ctid", which table "wrong" does not have
The first argument of idem_transition is the name of a column.'),
    (4, $$'twice', 'new > paid'$$, '22023
column "twice" of table "wrong" is generated
It is computed after the trigger "wrong" has fired.'),
    (5, $$'status'$$, '22023
trigger "wrong" allows no step
The arguments after the column are steps such as ''new > paid''.'),
    (6, $$'status', 'new > paid', 'paid'$$, '22023
trigger "wrong" has an argument that is no step: "paid"
Write a step as ''new > paid''; a state with > or " in it stands in double quotes.'),
    (7, $$'status', 'new > paid > refunded'$$, '22023
trigger "wrong" has an argument that is no step: "new > paid > refunded"
Write a step as ''new > paid''; a state with > or " in it stands in double quotes.'))
    AS w (number, arguments, said)
ORDER BY number;
SELECT is(pg_temp.trigger_says(definition || ' EXECUTE FUNCTION idem_transition(''status'', ''new > paid'')'), '39P01
idem_transition can be called only as a trigger BEFORE UPDATE FOR EACH ROW', definition)
FROM (VALUES (1, 'AFTER UPDATE ON wrong FOR EACH ROW'), (2, 'BEFORE UPDATE ON wrong')) AS d (number, definition)
ORDER BY number;
CREATE TRIGGER wrong BEFORE INSERT ON wrong FOR EACH ROW EXECUTE FUNCTION idem_transition('status', 'new > paid');
SELECT throws_ok($$INSERT INTO wrong VALUES ('new')$$, '39P01',
    'idem_transition can be called only as a trigger BEFORE UPDATE FOR EACH ROW', 'BEFORE INSERT');
SELECT throws_ok($$SELECT idem_transition()$$, '39P01', NULL, 'nor is it called by hand');

SELECT * FROM finish();
ROLLBACK;
