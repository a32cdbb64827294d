-- For psql, which goes on after an error: a holder settles after its lease has run out and the event was delivered again.
-- idem_commit raises ID001 and takes the whole transaction with it, the ledger's row too.
SELECT acquired, handler, event_id, attempt, taken_at FROM stress.take_lease() \gset
\if :acquired
SELECT pg_sleep(0.16);
SELECT acquired, COALESCE(attempt, 0) AS next_attempt FROM stress.acquire(('leased', :'handler', :'event_id')) \gset
BEGIN;
SELECT stress.settle(('leased', :'handler', :'event_id'), :attempt, :attempt) WHERE NOT stress.is_too_late(:'taken_at');
COMMIT;
\if :acquired
SELECT stress.settle(('leased', :'handler', :'event_id'), :next_attempt, :next_attempt);
\endif
\endif
