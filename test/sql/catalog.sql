-- What the extension's objects say in the catalogs: which there are, their comments, their privileges, how functions
-- may be planned. Whoever adds an object adds it here.
BEGIN;
SELECT plan(16);

CREATE TEMP VIEW member AS
    SELECT classid, objid
    FROM pg_depend
    WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
      AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'idem')
      -- PostgreSQL 17 lists the types that come with others, too.
      AND NOT (classid = 'pg_type'::regclass
               AND objid IN (SELECT t.oid FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
                             WHERE t.typcategory = 'A' OR c.relkind <> 'c'));

CREATE TEMP VIEW routine AS
    SELECT * FROM pg_proc WHERE oid IN (SELECT objid FROM member WHERE classid = 'pg_proc'::regclass);

-- Which objects there are

SELECT bag_eq(
    $$SELECT pg_describe_object(classid, objid, 0) FROM member WHERE classid <> 'pg_proc'::regclass$$,
    $$VALUES ('type idem_state'), ('type idem_outcome'), ('type idem_event'), ('type idem_claim'),
             ('type idem_event_claim'), ('type idem_due_event'), ('type idem_event_lease'), ('table idem_registry'),
             ('table idem_handler_policy'), ('view idem_policy'), ('table idem_control'), ('table idem_generation'), ('table idem_purge_state'),
             ('table idem_clock'), ('view idem_alarms'), ('view idem_tables'), ('view idem_generations'), ('view idem_purge_status'),
             ('view idem_stat'), ('view idem_unsettled')$$,
    'the extension has these types, tables and views');

SELECT set_eq(
    $$SELECT replace(oid::regprocedure::text, 'timestamp with time zone', 'timestamptz'),
             prokind, provolatile, proparallel, proisstrict
      FROM routine$$,
    $$VALUES
        ('idem_create_table(text,interval,interval,text,integer,boolean)',
         'f'::"char", 'v'::"char", 'u'::"char", false),
        ('idem_attach_table(regclass,interval,interval,text)',                                   'f', 'v', 'u', false),
        ('idem_set_policy(regclass,text,interval,interval,text,integer,interval,interval,text,interval,boolean,boolean,boolean)',
         'f', 'v', 'u', false),
        ('idem_channel(regclass)',                                                               'f', 'i', 's', true),
        ('idem_reset_policy(regclass,text)',                                                     'f', 'v', 'u', false),
        ('idem_receive(regclass,text,text,text,jsonb,bytea,timestamptz,timestamptz,boolean,text)',
         'f', 'v', 'u', false),
        ('idem_due(regclass,text,integer,interval)',                                             'f', 'v', 'u', false),
        ('idem_dead_letters(regclass,text)',                                                     'f', 's', 'u', false),
        ('idem_requeue(regclass,text,text,text)',                                                'f', 'v', 'u', false),
        ('idem_resolve(regclass,text,text,text,text,jsonb)',                                     'f', 'v', 'u', false),
        ('idem_once(regclass,text,text,regprocedure,jsonb,text,bytea,timestamptz,interval)',     'f', 'v', 'u', false),
        ('idem_acquire_many(regclass,text,text[],text,bytea[],timestamptz[],jsonb[],text,interval)',
         'f', 'v', 'u', false),
        ('idem_commit_many(regclass,text,text[],text,jsonb[],integer[],interval)',               'f', 'v', 'u', false),
        ('idem_extend_many(regclass,text,text[],text,integer[],interval)',                       'f', 'v', 'u', false),
        ('idem_release_many(regclass,text,text[],text,text[],integer[],interval,boolean)',       'f', 'v', 'u', false),
        ('idem_bypassed(regclass)',                                                              'f', 'v', 's', true),
        ('idem_touch()',                                                                         'f', 'v', 'u', false),
        ('idem_transition()',                                                                   'f', 'v', 'u', false),
        ('idem_newer()',                                                                        'f', 'v', 'u', false),
        ('idem_rotate(regclass)',                                                                'p', 'v', 'u', false),
        ('idem_purge(regclass)',                                                                 'p', 'v', 'u', false),
        ('idem_worker_passes()',                                                                 'f', 'v', 's', false),
        ('idem_stat_rows()',                                                                     'f', 'v', 's', false),
        ('idem_stat_reset(regclass)',                                                            'f', 'v', 'u', false),
        ('idem_unsettled_rows()',                                                                'f', 'v', 'u', false),
        ('idem_window_advice(regclass,text)',                                                    'f', 'v', 's', false),
        ('idem_worker_progress()',                                                               'f', 'v', 's', false),
        ('idem_slots(regclass)',                                                                 'f', 'v', 's', true),
        ('idem_gate_relation()',                                                                 'f', 'v', 's', false),
        ('idem_why_no_worker()',                                                                 'f', 'v', 's', false),
        ('idem_unknown_databases()',                                                             'f', 'v', 's', false),
        ('idem_preloaded()',                                                                     'f', 'v', 's', false),
        ('idem_filter(regclass)',                                                                'f', 'v', 's', true),
        ('idem_acquire(regclass,text,text,text,bytea,timestamptz,jsonb,text,interval,interval)', 'f', 'v', 'u', false),
        ('idem_accept(regclass,text,text,text,bytea,timestamptz,jsonb,interval)',                'f', 'v', 'u', false),
        ('idem_commit(regclass,text,text,text,jsonb,integer,interval)',                          'f', 'v', 'u', false),
        ('idem_release(regclass,text,text,text,text,integer,interval,boolean)',                  'f', 'v', 'u', false),
        ('idem_extend(regclass,text,text,text,integer,interval)',                                'f', 'v', 'u', false),
        ('idem_lookup(regclass,text,text,text)',                                                 'f', 's', 'u', false),
        ('idem_worker_passes()',                                                                 'f', 'v', 's', false),
        ('idem_worker_progress()',                                                               'f', 'v', 's', false),
        ('idem_key(text,text,text)',                                                             'f', 'i', 's', false),
        ('idem_business_key(text[])',                                                            'f', 'i', 's', false),
        ('idem_business_key(text[],text[])',                                                     'f', 'i', 's', false),
        ('idem_fingerprint(bytea)',                                                              'f', 'i', 's', true),
        ('idem_fingerprint(text)',                                                               'f', 'i', 's', true),
        ('idem_fingerprint(jsonb,text[])',                                                       'f', 'i', 's', true),
        ('idem_signature_fault(text,bytea,text,text,interval)',                                  'f', 'v', 's', false),
        ('idem_signature_fault(text,bytea,text,text[],interval)',                                'f', 'v', 's', false),
        ('idem_signature_fault(text,bytea,jsonb,text,interval)',                                 'f', 'v', 's', false),
        ('idem_signature_fault(text,bytea,jsonb,text[],interval)',                               'f', 'v', 's', false),
        ('idem_verify_signature(text,bytea,text,text,interval)',                                 'f', 'v', 's', false),
        ('idem_verify_signature(text,bytea,text,text[],interval)',                               'f', 'v', 's', false),
        ('idem_verify_signature(text,bytea,jsonb,text,interval)',                                'f', 'v', 's', false),
        ('idem_verify_signature(text,bytea,jsonb,text[],interval)',                              'f', 'v', 's', false)$$,
    'the extension has these functions; all that write are VOLATILE and PARALLEL UNSAFE');

SELECT is_empty(
    $$SELECT oid::regprocedure FROM routine
      WHERE prosecdef OR prolang <> (SELECT oid FROM pg_language WHERE lanname = 'c') OR proconfig IS NOT NULL$$,
    'every function is C, runs as its caller and changes no setting');

-- Comments

SELECT is_empty(
    $$SELECT pg_describe_object(classid, objid, 0) FROM member
      WHERE coalesce(obj_description(objid, (SELECT relname FROM pg_class WHERE oid = classid)), '') = ''$$,
    'every object has a comment');

SELECT is_empty(
    $$SELECT c.relname, a.attname
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      WHERE (c.oid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass)
             OR c.reltype IN (SELECT objid FROM member WHERE classid = 'pg_type'::regclass))
        AND coalesce(col_description(c.oid, a.attnum), '') = ''$$,
    'every column of its tables and types has a comment');

SELECT isnt(obj_description(oid, 'pg_extension'), NULL, 'so has the extension')
FROM pg_extension WHERE extname = 'idem';

-- Privileges

SELECT bag_eq(
    $$SELECT c.relname::text, coalesce(nullif(a.grantee, 0)::regrole::text, 'PUBLIC'), a.privilege_type
      FROM pg_class c, aclexplode(c.relacl) a
      WHERE c.oid IN (SELECT objid FROM member) AND a.grantee <> c.relowner$$,
    $$VALUES ('idem_registry', 'PUBLIC', 'SELECT'), ('idem_control', 'PUBLIC', 'SELECT'),
             ('idem_handler_policy', 'PUBLIC', 'SELECT'), ('idem_policy', 'PUBLIC', 'SELECT'),
             ('idem_generation', 'PUBLIC', 'SELECT'),
             ('idem_clock', 'PUBLIC', 'SELECT'), ('idem_alarms', 'PUBLIC', 'SELECT'), ('idem_tables', 'PUBLIC', 'SELECT'), ('idem_generations', 'PUBLIC', 'SELECT'),
             ('idem_purge_status', 'PUBLIC', 'SELECT'), ('idem_stat', 'PUBLIC', 'SELECT'),
             ('idem_unsettled', 'PUBLIC', 'SELECT')$$,
    'of its tables nothing is granted to anybody, but SELECT on all but errors of passes to PUBLIC');

SELECT is_empty(
    $$SELECT attrelid::regclass, attname FROM pg_attribute
      WHERE attrelid IN (SELECT objid FROM member WHERE classid = 'pg_class'::regclass) AND attacl IS NOT NULL
        AND (attrelid <> 'idem_purge_state'::regclass OR attname = 'last_error')$$,
    'nor on their columns, but on those of purging that hold no text');

SELECT is_empty(
    $$SELECT oid::regprocedure FROM routine WHERE proacl IS NOT NULL$$,
    'functions keep their default privilege, EXECUTE for PUBLIC');

SELECT is_empty(
    $$SELECT oid::regtype FROM pg_type WHERE oid IN (SELECT objid FROM member) AND typacl IS NOT NULL$$,
    'types keep theirs, USAGE for PUBLIC');

-- Types

SELECT enum_has_labels('idem_state', ARRAY['pending', 'processing', 'done', 'failed', 'dead']);

SELECT enum_has_labels('idem_outcome',
    ARRAY['acquired', 'duplicate', 'busy', 'backoff', 'dead', 'conflict', 'stale', 'bypassed']);

SELECT results_eq(
    $$SELECT attname::text COLLATE "default", format_type(atttypid, atttypmod) FROM pg_attribute
      WHERE attrelid = 'idem_event'::regclass AND attnum > 0 ORDER BY attnum$$,
    $$VALUES ('key', 'uuid'), ('state', 'idem_state'), ('attempt', 'integer'),
             ('first_seen_at', 'timestamp with time zone'), ('claimed_at', 'timestamp with time zone'),
             ('claimable_at', 'timestamp with time zone'), ('settled_at', 'timestamp with time zone'),
             ('expires_at', 'timestamp with time zone'), ('failures', 'integer'), ('slot', 'smallint'),
             ('together', 'boolean'), ('handler', 'text'), ('event_id', 'text'), ('batch', 'text'),
             ('fingerprint', 'bytea'), ('owner', 'text'), ('ordering', 'text'), ('result', 'jsonb'), ('error', 'text'), ('payload', 'jsonb'), ('extra', 'jsonb')$$,
    'idem_event has its columns, in the order which wastes no padding');

SELECT is_empty(
    $$SELECT attname FROM pg_attribute
      WHERE attrelid = 'idem_event'::regclass AND attname IN ('handler', 'event_id', 'batch', 'owner', 'ordering')
        AND attcollation <> '"C"'::regcollation$$,
    'identifiers compare byte by byte');

-- The extension as a whole

SELECT is(ARRAY['idem_registry', 'idem_handler_policy', 'idem_control', 'idem_generation']::regclass[]::oid[], extconfig,
    'pg_dump takes registry and control along')
FROM pg_extension WHERE extname = 'idem';

CREATE SCHEMA elsewhere;
SELECT throws_ok('ALTER EXTENSION idem SET SCHEMA elsewhere', '0A000', 'extension "idem" does not support SET SCHEMA',
    'the extension stays in its schema');

SELECT * FROM finish();
ROLLBACK;
