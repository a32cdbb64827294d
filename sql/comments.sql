-- What is said once holds wherever it stands again: a column without a comment of its own gets that of the column which
-- it repeats under the same name.

DO $$
DECLARE
    said record;
BEGIN
    FOR said IN
        SELECT repeats.target, a.attname, pg_catalog.col_description(s.attrelid, s.attnum) AS comment
        FROM (VALUES ('idem_event_claim', 'idem_claim'),
                     ('idem_due_event', 'idem_event'),
                     ('idem_handler_policy', 'idem_registry'),
                     ('idem_policy', 'idem_registry'),
                     ('idem_tables', 'idem_registry'),
                     ('idem_tables', 'idem_control'),
                     ('idem_generations', 'idem_generation'),
                     ('idem_purge_status', 'idem_purge_state')) AS repeats (target, source)
             JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) repeats.target::pg_catalog.regclass::pg_catalog.oid
             JOIN pg_catalog.pg_attribute s ON s.attrelid OPERATOR(pg_catalog.=) repeats.source::pg_catalog.regclass::pg_catalog.oid
                  AND s.attname OPERATOR(pg_catalog.=) a.attname
        WHERE a.attnum OPERATOR(pg_catalog.>) 0
          AND pg_catalog.col_description(a.attrelid, a.attnum) IS NULL
        ORDER BY repeats.source OPERATOR(pg_catalog.=) 'idem_control'
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON COLUMN %I.%I IS %L', said.target, said.attname, said.comment);
    END LOOP;
END $$;
