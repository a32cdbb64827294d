-- The database of the demo's receiver. None of its tables has a unique constraint: were an event to take effect twice,
-- both effects would show.

-- Claims of handlers whose effect is a row of this database: claim and effect share a transaction.
SELECT idem_create_table('inbox');

-- Claims of handlers whose effect is a message that leaves the database: a claim is a lease.
SELECT idem_create_table('outside', mode => 'lease');

-- What the handlers did in this database.
CREATE TABLE ledger (
    handler   text NOT NULL,
    event_id  text NOT NULL,
    batch     text,
    cents     bigint NOT NULL
);

-- What the handlers did outside: it is written through connections of its own, and no ROLLBACK takes it back.
CREATE TABLE outside_world (LIKE ledger INCLUDING ALL);

-- The same traffic with nothing in its way.
CREATE TABLE ledger_without_idem (LIKE ledger INCLUDING ALL);
