-- A new event by idem: claim, business writes, settle.
\set event random(1, 9223372036854775807)
\set wallet random(1, 10000)
BEGIN;
SELECT acquired, outcome, result FROM idem_acquire('webhook', 'charge-wallet', 'evt_' || :event);
INSERT INTO ledger VALUES ('evt_' || :event, 1000);
UPDATE wallet SET balance = balance - 1000 WHERE id = :wallet;
SELECT idem_commit('webhook', 'charge-wallet', 'evt_' || :event);
COMMIT;
