-- Who may create in a schema gains nothing when a superuser installs idem there: operators and functions that fit better
-- than the server's own, planted beforehand, are never run by the script, the views, or calls

BEGIN;
SELECT no_plan();
SET LOCAL client_min_messages = warning;
DROP EXTENSION idem CASCADE;

CREATE SCHEMA planted;
CREATE TABLE planted.sprung (what text);
CREATE FUNCTION planted.spring(what text) RETURNS void LANGUAGE sql AS 'INSERT INTO planted.sprung VALUES (what)';

-- An operator that the server has for the very same types comes first anyway, as pg_catalog does.
DO $plant$
DECLARE
    types text[] := ARRAY['regclass', 'oid', 'text', 'name', 'bigint', 'integer', 'smallint', 'timestamptz', 'interval',
                          'boolean', 'uuid', 'jsonb', 'double precision', '"char"', 'xid', 'text[]', 'integer[]'];
    it record;
BEGIN
    FOR it IN
        SELECT o.name, l.type AS a, r.type AS b
        FROM unnest(ARRAY['=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||']) o (name),
             unnest(types) l (type), unnest(types) r (type)
        WHERE NOT EXISTS (SELECT FROM pg_operator p
                          WHERE p.oprname = o.name AND p.oprleft = l.type::regtype AND p.oprright = r.type::regtype)
    LOOP
        EXECUTE format('CREATE FUNCTION planted.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', 'operator ' || it.name,
            it.a, it.b, CASE WHEN it.name IN ('+', '-', '*', '/', '||') THEN it.a ELSE 'boolean' END,
            format('BEGIN PERFORM planted.spring(%L); RETURN NULL; END', format('%s %s %s', it.a, it.name, it.b)));
        EXECUTE format('CREATE OPERATOR planted.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = planted.%I)',
            it.name, it.a, it.b, 'operator ' || it.name);
    END LOOP;
    FOR it IN
        SELECT DISTINCT p.proname AS name, replace(pg_get_function_identity_arguments(p.oid), 'oid', 'regclass') AS arguments
        FROM pg_proc p
        WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provariadic = 0
          AND pg_get_function_identity_arguments(p.oid) ~ '\moid\M'
          AND p.proname ~ '^(pg_|col_desc|obj_desc|format_type|has_table)' AND p.proname !~ '^pg_(stat_reset|create|lo_)'
          AND pg_get_function_identity_arguments(p.oid) !~ 'internal|"any"|OUT |oids|oidvector'
    LOOP
        EXECUTE format('CREATE FUNCTION planted.%I(%s) RETURNS text LANGUAGE plpgsql AS %L', it.name, it.arguments,
            format('BEGIN PERFORM planted.spring(%L); RETURN NULL; END', it.name));
    END LOOP;
    FOR it IN SELECT unnest(ARRAY['idem_filter', 'idem_bypassed', 'idem_slots', 'idem_worker_passes']) AS name
    LOOP
        EXECUTE format('CREATE FUNCTION planted.%I(oid) RETURNS text LANGUAGE plpgsql AS %L', it.name,
            format('BEGIN PERFORM planted.spring(%L); RETURN NULL; END', it.name));
    END LOOP;
END $plant$;

-- The trap springs
SET LOCAL search_path = planted;
DO $$ BEGIN PERFORM 'pg_class'::regclass = 'pg_class'::regclass, pg_total_relation_size('pg_class'::regclass); END $$;
SET LOCAL search_path = public;
SELECT bag_eq('SELECT what FROM planted.sprung', $$VALUES ('regclass = regclass')$$,
    'an unqualified operator runs what was planted');
DELETE FROM planted.sprung;

SET LOCAL search_path = planted, public;
CREATE EXTENSION idem SCHEMA planted;
DO $$
DECLARE
    it record;
BEGIN
    PERFORM planted.idem_create_table('public.inbox');
    PERFORM planted.idem_set_policy('public.inbox', 'h', max_attempts => 3);
    PERFORM planted.idem_accept('public.inbox', 'h', 'e');
    PERFORM planted.idem_receive('public.inbox', 'h', 'later');
    PERFORM planted.idem_due('public.inbox', 'h');
    PERFORM planted.idem_dead_letters('public.inbox');
    FOR it IN SELECT oid FROM pg_class WHERE relnamespace OPERATOR(pg_catalog.=) 'planted'::regnamespace::oid AND relkind OPERATOR(pg_catalog.=) 'v'
    LOOP
        EXECUTE pg_catalog.format('SELECT * FROM %s', it.oid::regclass);
    END LOOP;
    DROP TABLE public.inbox;
END $$;
SET LOCAL search_path = public;
SELECT is_empty('SELECT what FROM planted.sprung', 'neither script, views nor calls have run any of it');

SELECT * FROM finish();
ROLLBACK;
