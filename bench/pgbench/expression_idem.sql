-- A new event by idem in one statement: the claim, in an expression, and the business write.
\set event random(1, 9223372036854775807)
INSERT INTO ledger SELECT 'evt_' || :event, 1000
    WHERE (idem_accept('webhook', 'charge-wallet', 'evt_' || :event)).acquired;
