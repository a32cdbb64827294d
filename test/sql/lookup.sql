-- idem_lookup: the remembered event, for support and reconciliation.
CREATE SCHEMA lookup;
SET search_path = lookup, public;

DO $$
BEGIN
    PERFORM idem_create_table('outbox', mode => 'lease');
    PERFORM idem_acquire('outbox', 'send', 'full', 'may', idem_fingerprint('A'::text),
                         payload => '{"to": "A"}', owner => 'token-1');
    PERFORM idem_acquire('outbox', 'send', 'expired');
    UPDATE outbox SET extra = '{"later": true}' WHERE event_id = 'full';
    UPDATE outbox SET expires_at = now() - interval '1 day', claimable_at = now() - interval '2 days'
        WHERE event_id = 'expired';
END $$;

-- pgTAP writes, so its transaction can't be read only.
BEGIN READ ONLY;
SELECT state = 'processing' AS read_only_works FROM idem_lookup('outbox', 'send', 'full', 'may') \gset
SELECT pg_current_xact_id_if_assigned() IS NULL AS without_xid \gset
COMMIT;

BEGIN;
SELECT plan(20);

SELECT is(idem_lookup('outbox', 'send', 'full', 'may')::text, o::text, 'it is the row, with every column')
FROM outbox o WHERE event_id = 'full';
SELECT is(pg_typeof(idem_lookup('outbox', 'send', 'full', 'may'))::text, 'idem_event', 'as idem_event');
SELECT is(ROW(key = idem_key('send', 'full', 'may'), state, attempt, failures, slot, handler, event_id, batch,
              fingerprint = idem_fingerprint('A'::text), owner, payload, extra)::text,
    '(t,processing,1,0,0,send,full,may,t,token-1,"{""to"": ""A""}","{""later"": true}")', 'column by column')
FROM idem_lookup('outbox', 'send', 'full', 'may');
SELECT is(state, 'processing', 'expired, it is told all the same') FROM idem_lookup('outbox', 'send', 'expired');

SELECT is(idem_lookup('outbox', 'send', 'full'), NULL, 'without its batch it is another event');
SELECT is(idem_lookup('outbox', 'send', 'full', 'june'), NULL, 'in another batch too');
SELECT is(idem_lookup('outbox', 'mail', 'full', 'may'), NULL, 'of another handler too');
SELECT is(idem_lookup('outbox', 'send', 'never'), NULL, 'what is not remembered is null');
SELECT is(count(*), 1::bigint, 'one row of nulls, where it is asked as a table')
FROM idem_lookup('outbox', 'send', 'never');

SELECT idem_acquire('outbox', 'send', 'new') \g /dev/null
SELECT is(state, 'processing', 'its own transaction sees a new event') FROM idem_lookup('outbox', 'send', 'new');
SELECT idem_commit('outbox', 'send', 'new', result => '1') \g /dev/null
SELECT is(ROW(state, result)::text, '(done,1)', 'as it is') FROM idem_lookup('outbox', 'send', 'new');
SELECT is(count(*), 2::bigint, 'it may be asked for many')
FROM (VALUES ('new'), ('expired'), ('never')) e (id), idem_lookup('outbox', 'send', e.id) WHERE state IS NOT NULL;
SELECT throws_ok($$INSERT INTO outbox SELECT (idem_lookup('outbox', 'send', 'new')).*$$, '23505', NULL,
    'its columns are the table''s columns');

SELECT ok(:'read_only_works', 'it works in a read-only transaction');
SELECT ok(:'without_xid', 'and needs no transaction id');

SELECT throws_ok($$SELECT idem_lookup(NULL, 'send', 'new')$$, '22004', 'dedup must not be null');
SELECT throws_ok($$SELECT idem_lookup('outbox', NULL, 'new')$$, '22004', 'handler must not be null');
SELECT throws_ok($$SELECT idem_lookup('outbox', 'send', NULL)$$, '22004', 'event_id must not be null');
SELECT throws_ok($$SELECT idem_lookup('outbox', 'send', 'new', '')$$, '22023', 'batch must not be empty');
SELECT throws_ok($$SELECT idem_lookup('pg_class', 'send', 'new')$$, '42809', '"pg_class" is not a dedup table');

SELECT * FROM finish();
ROLLBACK;
SET client_min_messages = warning;
DROP SCHEMA lookup CASCADE;
