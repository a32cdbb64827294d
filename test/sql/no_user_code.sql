-- Below the gate, which all calls share, no code of a user's runs: a dedup table that would run some is not in order
BEGIN;
CREATE SCHEMA code;
SET search_path = code, public;

DO $$
BEGIN
    PERFORM idem_create_table('inbox', generations => 3);
END $$;
CREATE FUNCTION reenter(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT acquired FROM idem_accept('code.inbox', 'h', 'inner'));
END $$;
CREATE FUNCTION same(text, text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
CREATE OPERATOR ==== (LEFTARG = text, RIGHTARG = text, FUNCTION = code.same);
CREATE OPERATOR === (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_catalog.texteq);
CREATE DOMAIN short AS text CHECK (code.reenter(VALUE));

CREATE TABLE cases (partition text, predicate text, allowed boolean);
INSERT INTO cases VALUES
    ('inbox_g0', 'reenter(event_id)',                                       false),
    ('inbox',    'CASE WHEN reenter(event_id) THEN true END',               false),
    ('inbox',    'event_id ==== handler',                                   false),
    ('inbox',    'event_id::short IS NOT NULL',                             false),
    ('inbox_g0', 'pg_sleep(0) IS NOT NULL',                                 false),
    ('inbox_g0', 'query_to_xml(event_id, true, true, event_id) IS NOT NULL', false),
    ('inbox_g0', 'to_jsonb(inbox_g0) IS NOT NULL',                          false),
    ('inbox',    'length(event_id) < 200',                                  true),
    ('inbox',    'event_id === handler OR event_id > ''''',                 true),
    ('inbox',    'CASE state WHEN ''done'' THEN true ELSE coalesce(error, '''') = '''' END', true);

CREATE FUNCTION outcome_of(event_id text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT outcome FROM idem_accept('code.inbox', 'h', event_id));
EXCEPTION WHEN wrong_object_type THEN
    RETURN SQLERRM;
END $$;
CREATE FUNCTION tried(change text, undo text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE change;
    RETURN NEXT outcome_of('with ' || change);
    EXECUTE undo;
    RETURN NEXT outcome_of('without ' || change);
END $$;

SELECT no_plan();
SELECT results_eq(
    format('SELECT * FROM tried(%L, %L)', format('ALTER TABLE %s ADD CONSTRAINT a CHECK (%s) NOT VALID', partition, predicate),
           format('ALTER TABLE %s DROP CONSTRAINT a', partition)),
    ARRAY[CASE WHEN allowed THEN 'acquired' ELSE 'dedup table "inbox" is not in order' END, 'acquired'],
    format('constraint: %s', predicate))
FROM cases;
SELECT results_eq(
    format('SELECT * FROM tried(%L, %L)', change, 'DROP INDEX i'),
    ARRAY[CASE WHEN allowed THEN 'acquired' ELSE 'dedup table "inbox" is not in order' END, 'acquired'],
    change)
FROM (VALUES ('CREATE INDEX i ON inbox_g0 (same(event_id, handler))', false),
             ('CREATE INDEX i ON inbox (event_id) WHERE same(event_id, handler)', false),
             ('CREATE INDEX i ON inbox (lower(event_id)) WHERE state IN (''done'', ''dead'')', true),
             ('CREATE INDEX i ON inbox USING gin (payload)', true)) v(change, allowed);
SELECT is_empty($$SELECT FROM inbox WHERE event_id = 'inner'$$, 'none of it ran');

ALTER TABLE inbox_g0 ADD CONSTRAINT a CHECK (reenter(event_id)) NOT VALID;
CREATE FUNCTION told() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    detail text;
    hint text;
BEGIN
    PERFORM idem_accept('code.inbox', 'h', 'told');
EXCEPTION WHEN wrong_object_type THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN detail || ' ' || hint;
END $$;
SELECT is(told(), 'The constraint "a" of "inbox_g0" uses function reenter(text); only immutable functions of the server''s own may be used there. Drop that constraint.',
    'the error says what is wrong, and what to do');
SELECT * FROM finish();
ROLLBACK;
