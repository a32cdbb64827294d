# Callers that claim, settle and release many events at once, the same ones in other orders, as the ring turns: none waits
# for another in a circle, and no event is worked on twice.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("fsync = off\nidem.backoff_jitter = 0");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', generations => 8);
    SELECT idem_create_table('outbox', '5 milliseconds', '1 day', 'lease', generations => 8);
    SELECT idem_set_policy(dedup, max_attempts => 1000000) FROM idem_tables;
    CREATE TABLE worked (dedup text, event_id text);

    -- Some of 600 events, some of them more than once, in any order.
    CREATE FUNCTION some_events() RETURNS text[] LANGUAGE sql AS $$
        SELECT array_agg('event ' || (600 * random())::int) FROM generate_series(1, 30)
    $$;

    CREATE PROCEDURE work_in_transaction() LANGUAGE plpgsql AS $$
    DECLARE
        done text[];
        failed text[];
    BEGIN
        FOR i IN 1 .. 150 LOOP
            SELECT array_agg(event_id) FILTER (WHERE chance > 0.3), array_agg(event_id) FILTER (WHERE chance <= 0.3)
                INTO done, failed
                FROM idem_acquire_many('inbox', 'book', some_events()), LATERAL (SELECT random() AS chance) c
                WHERE acquired;
            INSERT INTO worked SELECT 'inbox', unnest(done);
            PERFORM idem_commit_many('inbox', 'book', coalesce(done, '{}'));
            PERFORM idem_release_many('inbox', 'book', coalesce(failed, '{}'), errors => failed);
            IF random() < 0.2 THEN ROLLBACK; ELSE COMMIT; END IF;
        END LOOP;
    END $$;

    -- A lease may run out before it is settled: then somebody else may have it, and the work is undone.
    CREATE PROCEDURE work_as_lease() LANGUAGE plpgsql AS $$
    DECLARE
        ids text[];
        attempts int[];
    BEGIN
        FOR i IN 1 .. 150 LOOP
            SELECT array_agg(event_id), array_agg(attempt) INTO ids, attempts
                FROM idem_acquire_many('outbox', 'send', some_events()) WHERE acquired;
            COMMIT;
            BEGIN
                IF random() < 0.3 THEN
                    PERFORM idem_release_many('outbox', 'send', coalesce(ids, '{}'), errors => ids, attempts => attempts);
                ELSE
                    INSERT INTO worked SELECT 'outbox', unnest(ids);
                    PERFORM idem_commit_many('outbox', 'send', coalesce(ids, '{}'), attempts => attempts);
                END IF;
            EXCEPTION WHEN SQLSTATE 'ID001' THEN
                NULL;
            END;
            COMMIT;
        END LOOP;
    END $$;
});

$node->pgbench('--no-vacuum --client=8 --transactions=3',
    0, [qr/processed: 24\/24/], [qr/^$/], 'eight callers in transaction mode, as the ring turns',
    {   '151_transaction@11' => 'CALL work_in_transaction();',
        '151_turn_inbox@1' => "SET client_min_messages = error;\nCALL idem_rotate('inbox');\nCALL work_in_transaction();"
    });
$node->pgbench('--no-vacuum --client=8 --transactions=3',
    0, [qr/processed: 24\/24/], [qr/^$/], 'eight callers of leases, as the ring turns',
    {   '151_lease@11' => 'CALL work_as_lease();',
        '151_turn_outbox@1' => "SET client_min_messages = error;\nCALL idem_rotate('outbox');\nCALL work_as_lease();"
    });

foreach my $dedup ('inbox', 'outbox')
{
    is( $node->safe_psql(
            'postgres', "SELECT event_id FROM worked WHERE dedup = '$dedup' GROUP BY 1 HAVING count(*) > 1"),
        '', "$dedup: none worked on twice");
    is( $node->safe_psql(
            'postgres', qq{
            SELECT count(*) FROM (SELECT event_id FROM $dedup WHERE state = 'done') d
            FULL JOIN (SELECT event_id FROM worked WHERE dedup = '$dedup') w USING (event_id)
            WHERE d.event_id IS NULL OR w.event_id IS NULL}),
        0, "$dedup: what was worked on is done, and nothing else");
    is($node->safe_psql('postgres', "SELECT event_id FROM $dedup GROUP BY 1 HAVING count(*) > 1"),
        '', "$dedup: each remembered once");
    cmp_ok($node->safe_psql('postgres', "SELECT count(*) FROM worked WHERE dedup = '$dedup'"),
        '>', 300, "$dedup: most were worked on");
}

$node->stop;
done_testing();
