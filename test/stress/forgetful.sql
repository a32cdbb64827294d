-- For psql, which goes on after an error: a caller that does the work and neither commits nor releases its claim, or does so in
-- a savepoint which it rolls back. COMMIT raises ID003 and takes the ledger's row with it.
BEGIN;
SELECT (event).dedup, (event).handler, (event).event_id, random() < 0.5 AS half FROM stress.pick('wide') AS event \gset
SELECT acquired, COALESCE(attempt, 0) AS attempt FROM stress.acquire((:'dedup', :'handler', :'event_id')) \gset
\if :acquired
SELECT stress.book((:'dedup', :'handler', :'event_id'));
\if :half
SAVEPOINT work;
SELECT stress.settle((:'dedup', :'handler', :'event_id'), :attempt);
ROLLBACK TO work;
\endif
\endif
COMMIT;
