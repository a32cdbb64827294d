-- All that idem and its tables hold.
SELECT * FROM inbox ORDER BY key;
SELECT * FROM outbox ORDER BY key;
SELECT i.* FROM idem_registry i ORDER BY dedup::text;
SELECT i.* FROM idem_handler_policy i ORDER BY dedup::text, handler;
SELECT i.* FROM idem_control i ORDER BY dedup::text;
SELECT i.* FROM idem_generation i ORDER BY dedup::text, generation;
