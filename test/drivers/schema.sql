-- What the programs of test/drivers find in their database: idem in a schema of its own, and a role that is nothing but
-- the application's (docs/own_schema.md).
CREATE SCHEMA dedup;
CREATE EXTENSION idem SCHEMA dedup;
SELECT dedup.idem_create_table('dedup.inbox');
SELECT dedup.idem_create_table('dedup.outbox', mode => 'lease');
GRANT USAGE ON SCHEMA dedup TO app;
GRANT INSERT, UPDATE ON dedup.inbox, dedup.outbox TO app;
GRANT CREATE, USAGE ON SCHEMA public TO app;
CREATE TABLE ledger (event_id text);
ALTER TABLE ledger OWNER TO app;
