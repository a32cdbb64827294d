-- A duplicate by idem, one statement in a transaction of its own.
\set event random(1, 1000000)
SELECT acquired, outcome, result
    FROM idem_acquire('webhook_1m', 'charge-wallet', 'evt_' || left(md5(:event::text), 24));
