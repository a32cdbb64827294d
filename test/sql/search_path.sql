-- Whatever search_path is, idem finds its own objects and the server's: here one whose first schema has others of the
-- same names.
CREATE SCHEMA hostile;
CREATE TYPE hostile.idem_event AS (key text);
CREATE TYPE hostile.idem_claim AS (acquired text);
CREATE TYPE hostile.idem_due_event AS (event_id text);
CREATE TYPE hostile.idem_event_claim AS (event_id text);
CREATE TYPE hostile.idem_state AS ENUM ('hostile');
CREATE TYPE hostile.idem_outcome AS ENUM ('hostile');
CREATE DOMAIN hostile.uuid AS text CHECK (false);
CREATE DOMAIN hostile.jsonb AS text CHECK (false);
CREATE DOMAIN hostile.timestamptz AS text CHECK (false);
CREATE DOMAIN hostile.int2 AS text CHECK (false);
CREATE TABLE hostile.idem_registry (dedup text);
CREATE TABLE hostile.idem_control (dedup text);
CREATE TABLE hostile.idem_handler_policy (dedup text);
CREATE TABLE hostile.pg_class ();
CREATE TABLE hostile.pg_extension ();

-- Whoever calls one of these fails.
CREATE FUNCTION hostile.refuse() RETURNS bool LANGUAGE plpgsql
    AS $$BEGIN RAISE EXCEPTION 'hostile function called'; END$$;
CREATE FUNCTION hostile.same(uuid, uuid) RETURNS bool LANGUAGE sql AS 'SELECT hostile.refuse()';
CREATE FUNCTION hostile.same(oid, oid) RETURNS bool LANGUAGE sql AS 'SELECT hostile.refuse()';
CREATE FUNCTION hostile.same(int2, int4) RETURNS bool LANGUAGE sql AS 'SELECT hostile.refuse()';
CREATE FUNCTION hostile.same(text, text) RETURNS bool LANGUAGE sql AS 'SELECT hostile.refuse()';
CREATE FUNCTION hostile.same(timestamptz, timestamptz) RETURNS bool LANGUAGE sql AS 'SELECT hostile.refuse()';
CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = uuid, RIGHTARG = uuid);
CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = oid, RIGHTARG = oid);
CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = int2, RIGHTARG = int4);
CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR hostile.< (FUNCTION = hostile.same, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR hostile.<= (FUNCTION = hostile.same, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR hostile.= (FUNCTION = hostile.same, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE OPERATOR hostile.> (FUNCTION = hostile.same, LEFTARG = timestamptz, RIGHTARG = timestamptz);
CREATE FUNCTION hostile.path(jsonb, text[]) RETURNS jsonb LANGUAGE sql AS 'SELECT hostile.refuse()::text::jsonb';
CREATE OPERATOR hostile.#> (FUNCTION = hostile.path, LEFTARG = jsonb, RIGHTARG = text[]);
CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz LANGUAGE sql
    AS 'SELECT hostile.refuse()::text::timestamptz';
CREATE FUNCTION hostile.now() RETURNS timestamptz LANGUAGE sql AS 'SELECT hostile.refuse()::text::timestamptz';

-- Statements run outside pgTAP, whose own functions do not bear such a path; their answers are kept for it.
CREATE TABLE hostile.answer (search_path text, claim text, row text, keys text, retries text);
CREATE FUNCTION public.search_path_action(payload jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT payload';

CREATE PROCEDURE hostile.work(path pg_catalog.text) LANGUAGE plpgsql AS $$
DECLARE
    dedup pg_catalog.regclass;
    claim pg_catalog.text;
    stored pg_catalog.text;
    keys pg_catalog.text;
    retries pg_catalog.text;
BEGIN
    PERFORM pg_catalog.set_config('search_path', path, true);
    dedup := public.idem_create_table('public.worked', generations => 3);
    claim := pg_catalog.concat_ws(' ',
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'e', 'b',
                                                   public.idem_fingerprint('x'::pg_catalog.text),
                                                   payload => '{}', owner => 'o') c),
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'e', 'b') c),
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'e', 'b', owner => 'o') c),
        public.idem_commit(dedup, 'book', 'e', 'b', '[1]') OPERATOR(pg_catalog.>) pg_catalog.now(),
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'e', 'b') c),
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'e', 'b',
                                                   public.idem_fingerprint('y'::pg_catalog.text)) c),
        (SELECT c.outcome FROM public.idem_accept(dedup, 'book', 'accepted') c),
        (SELECT c.outcome FROM public.idem_release(dedup, 'book', 'failed', error => 'no') c),
        (SELECT c.outcome FROM public.idem_acquire(dedup, 'book', 'failed') c),
        public.idem_extend(dedup, 'book', 'failed'),
        (SELECT c.outcome FROM public.idem_release(dedup, 'book', 'failed') c));
    stored := (SELECT pg_catalog.concat_ws(' ', l.state, l.attempt, l.result)
               FROM public.idem_lookup(dedup, 'book', 'e', 'b') l);
    keys := pg_catalog.concat_ws(' ', public.idem_key('h', 'e'), public.idem_business_key('a', 'b'),
        public.idem_fingerprint('{"a": {"b": 1}}'::pg_catalog.jsonb, '{a,b}') OPERATOR(pg_catalog.=)
            public.idem_fingerprint('{"a": {"b": 1.0}}'::pg_catalog.jsonb, '{a,b}'));
    PERFORM public.idem_set_policy(dedup, 'send', max_attempts => 1, mode => 'lease');
    retries := pg_catalog.concat_ws(' ',
        (SELECT p.mode FROM public.idem_policy p WHERE p.handler OPERATOR(pg_catalog.=) 'send'),
        (SELECT c.outcome FROM public.idem_receive(dedup, 'send', 'r', payload => '1') c),
        (SELECT d.event_id FROM public.idem_due(dedup, 'send') d),
        (SELECT c.outcome FROM public.idem_release(dedup, 'send', 'r', error => 'no') c));
    retries := pg_catalog.concat_ws(' ', retries,
        (SELECT d.event_id FROM public.idem_dead_letters(dedup, 'send') d),
        (SELECT c.outcome FROM public.idem_requeue(dedup, 'send', 'r') c),
        (SELECT c.outcome FROM public.idem_resolve(dedup, 'send', 'r', note => 'n') c),
        (SELECT pg_catalog.concat_ws(' ', c.outcome, c.result)
         FROM public.idem_once(dedup, 'send', 'o', 'public.search_path_action(pg_catalog.jsonb)', '1') c),
        (SELECT c.outcome FROM public.idem_acquire_many(dedup, 'send', '{m}') c),
        public.idem_commit_many(dedup, 'send', '{m}') OPERATOR(pg_catalog.>) pg_catalog.now(),
        (SELECT c.outcome FROM public.idem_release_many(dedup, 'send', '{f}') c),
        public.idem_reset_policy(dedup, 'send'));
    DELETE FROM public.idem_control c WHERE c.dedup::pg_catalog.text OPERATOR(pg_catalog.~) 'worked';
    DELETE FROM public.idem_registry r WHERE r.dedup::pg_catalog.text OPERATOR(pg_catalog.~) 'worked';
    PERFORM public.idem_attach_table('public.worked');
    claim := pg_catalog.concat_ws(' ', claim,
        (SELECT c.outcome FROM public.idem_acquire('public.worked', 'book', 'e', 'b') c));
    INSERT INTO hostile.answer VALUES (path, claim, stored, keys, retries);
    DROP TABLE public.worked;
END $$;
CALL hostile.work('hostile, pg_catalog, public');
CALL hostile.work('pg_temp, hostile, public, pg_catalog');
CALL hostile.work('');
CALL hostile.work('public');

-- Turning the ring has to be done outside a transaction block.
SELECT idem_create_table('turned', '1 microsecond', '2 microseconds', generations => 2) \g /dev/null
SELECT FROM idem_accept('turned', 'book', 'e');
SET search_path = hostile, pg_catalog, public;
CALL public.idem_rotate('public.turned');
CALL public.idem_rotate('public.turned');
RESET search_path;

BEGIN;
SELECT plan(28);

SELECT is(claim, 'acquired busy acquired t duplicate conflict acquired backoff acquired backoff duplicate',
    format('claims with search_path "%s"', search_path)) FROM hostile.answer;
SELECT is(row, 'done 1 [1]', format('the row with search_path "%s"', search_path)) FROM hostile.answer;
SELECT is(keys, '2149cf72-94e4-0fc3-c1fd-b0012770de93 a:b t', format('keys with search_path "%s"', search_path))
FROM hostile.answer;
SELECT is(retries, 'lease acquired r dead r backoff duplicate acquired 1 acquired t backoff t',
    format('retries with search_path "%s"', search_path)) FROM hostile.answer;
SELECT is(count(*), 4::bigint, 'each of four paths was tried') FROM hostile.answer;
SELECT is(ROW(oldest_generation, current_generation)::text, '(1,2)', 'the ring turned twice with a hostile search_path')
FROM idem_control WHERE dedup = 'turned'::regclass;
SELECT is_empty('TABLE turned', 'and what had expired is gone');

-- A temporary table of the same name comes first, as always; it is no dedup table

SELECT idem_create_table('shadowed') \g /dev/null
SELECT is(outcome, 'acquired', 'a dedup table') FROM idem_accept('shadowed', 'book', 'e');
CREATE TEMP TABLE shadowed (LIKE shadowed);
SELECT throws_ok($$SELECT idem_accept('shadowed', 'book', 'e')$$, '42809', '"shadowed" is not a dedup table',
    'is shadowed by a temporary one: refused');
SELECT is_empty('SELECT FROM pg_temp.shadowed', 'nothing goes there');
SELECT is(outcome, 'duplicate', 'with its schema it is found') FROM idem_accept('public.shadowed', 'book', 'e');
DROP TABLE pg_temp.shadowed;
SELECT is(outcome, 'duplicate', 'and without the temporary table, as before') FROM idem_accept('shadowed', 'book', 'e');

-- Neither does a temporary table shadow idem's own

CREATE TEMP TABLE idem_registry (LIKE public.idem_registry);
CREATE TEMP TABLE idem_control (LIKE public.idem_control);
SELECT is(idem_create_table('beside')::text, 'beside', 'a dedup table beside temporary tables of idem''s names');
SELECT is_empty('SELECT FROM pg_temp.idem_registry', 'is not registered there');
SELECT is(count(*), 1::bigint, 'but where it belongs')
FROM public.idem_registry JOIN public.idem_control USING (dedup) WHERE dedup = 'beside'::regclass;
SELECT is(outcome, 'acquired', 'and takes events') FROM idem_accept('beside', 'book', 'e');

SELECT * FROM finish();
ROLLBACK;
DROP TABLE turned;
DROP FUNCTION search_path_action;
SET client_min_messages = warning;
DROP SCHEMA hostile CASCADE;
