-- A duplicate by idem, one statement in a transaction of its own.
\set event random(1, :known)
SELECT acquired, outcome, result
    FROM idem_acquire('webhook_full', 'charge-wallet', 'evt_' || left(md5(:event::text), 24));
