-- What each event is answered, and how many times; undone afterwards.
BEGIN;
SELECT 'inbox', outcome, count(*), count(*) FILTER (WHERE result = to_jsonb(i)) AS with_result
FROM unnest(ARRAY['first', 'second', 'last']) generation, generate_series(1, 2000) i,
     idem_accept('inbox', 'book', generation || ' event ' || i, fingerprint => idem_fingerprint(i::text))
GROUP BY outcome;
SELECT 'other content', outcome, count(*)
FROM unnest(ARRAY['first', 'second', 'last']) generation,
     idem_accept('inbox', 'book', generation || ' event 1', fingerprint => idem_fingerprint('other'::text))
GROUP BY outcome;
SELECT 'resent', outcome, count(*)
FROM unnest(ARRAY['first', 'second', 'last']) generation, generate_series(1, 10) i,
     idem_accept('inbox', 'book', generation || ' event', batch => 'resend ' || i)
GROUP BY outcome;
SELECT 'new', outcome, count(*)
FROM generate_series(1, 1000) i, idem_accept('inbox', 'book', 'new event ' || i) GROUP BY outcome;
SELECT what, outcome, attempt, count(*)
FROM unnest(ARRAY['first', 'second', 'last']) generation,
     unnest(ARRAY['runs', 'ran out', 'failed', 'not due', 'given back', 'done', 'received']) what,
     idem_acquire('outbox', 'send', generation || ' ' || what)
GROUP BY what, outcome, attempt ORDER BY what;
SELECT 'dead', outcome, count(*)
FROM unnest(ARRAY['first', 'second', 'last']) generation, idem_acquire('outbox', 'once', generation || ' dead')
GROUP BY outcome;
ROLLBACK;
