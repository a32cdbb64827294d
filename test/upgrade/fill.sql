-- Dedup tables before an upgrade of the server: events in every state, in sealed generations and the current one.
CREATE EXTENSION idem;
SELECT idem_create_table('inbox', generations => 4),
       idem_create_table('outbox', hot_window => '10 days', mode => 'lease', generations => 4) \g /dev/null
SELECT idem_set_policy('outbox', max_attempts => 5), idem_set_policy('outbox', 'once', max_attempts => 1),
       idem_set_policy('outbox', 'lenient', on_unavailable => 'allow') \g /dev/null

CREATE PROCEDURE fill(generation text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM idem_accept('inbox', 'book', generation || ' event ' || i, fingerprint => idem_fingerprint(i::text),
                        result => to_jsonb(i)) FROM generate_series(1, 2000) i;
    PERFORM idem_accept('inbox', 'book', generation || ' event', batch => 'resend ' || i) FROM generate_series(1, 10) i;
    PERFORM idem_release('inbox', 'book', generation || ' failed', error => 'no balance');

    PERFORM idem_acquire('outbox', 'send', generation || e, payload => '{"to": "A"}', owner => 'token')
    FROM unnest(ARRAY[' runs', ' ran out', ' failed', ' not due', ' given back', ' done']) e;
    PERFORM idem_acquire('outbox', 'once', generation || ' dead', payload => '{"to": "A"}');
    PERFORM idem_receive('outbox', 'send', generation || ' received', payload => '{"to": "A"}');
    PERFORM idem_release('outbox', 'send', generation || ' failed', error => 'no answer', attempt => 1, retry_after => '0');
    PERFORM idem_release('outbox', 'send', generation || ' not due', error => 'no answer', attempt => 1,
                         retry_after => '10 days');
    PERFORM idem_release('outbox', 'send', generation || ' given back', attempt => 1, retry_after => '10 days');
    PERFORM idem_release('outbox', 'once', generation || ' dead', error => 'no answer', attempt => 1);
    PERFORM idem_commit('outbox', 'send', generation || ' done', attempt => 1, result => '1');
    UPDATE outbox SET claimable_at = now() WHERE event_id = generation || ' ran out';
END $$;
CALL fill('first');
CALL idem_rotate('inbox');
CALL idem_rotate('outbox');
CALL fill('second');
CALL idem_rotate('inbox');
CALL idem_rotate('outbox');
CALL fill('last');
