-- A new event by idem in one statement: the claim, the business write, and the answer for the sender.
\set event random(1, 9223372036854775807)
WITH accept AS MATERIALIZED (SELECT * FROM idem_accept('webhook', 'charge-wallet', 'evt_' || :event)),
effect AS (INSERT INTO ledger SELECT 'evt_' || :event, 1000 FROM accept WHERE acquired)
SELECT outcome, result FROM accept;
