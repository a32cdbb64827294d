# Whatever waits to be worked on is given out by idem_due to one of several callers at the same time: no event is worked
# on twice, and none is forgotten, though the ring turns, callers roll back or die, and work fails.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use Time::HiRes qw(usleep);

my $node = start_node("fsync = off\nidem.backoff_jitter = 0");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', generations => 8);
    SELECT idem_create_table('outbox', '20 milliseconds', '1 day', 'lease', generations => 8);
    SELECT idem_set_policy(dedup, max_attempts => 1000000) FROM idem_tables;
    CREATE TABLE worked (dedup text, event_id text);

    -- One caller, until nothing is due. In transaction mode what it does is rolled back now and then.
    CREATE PROCEDURE work_in_transaction() LANGUAGE plpgsql AS $$
    DECLARE
        ids text[];
    BEGIN
        LOOP
            SELECT array_agg(event_id) INTO ids FROM idem_due('inbox', max_events => 7);
            EXIT WHEN ids IS NULL;
            INSERT INTO worked SELECT 'inbox', unnest(ids);
            IF random() < 0.2 THEN
                ROLLBACK;
                CONTINUE;
            END IF;
            PERFORM idem_commit_many('inbox', 'book', ids);
            COMMIT;
        END LOOP;
    END $$;

    -- As leases, some fail, and some are never settled. Some run out before they are settled: then somebody else may
    -- have taken them over, and the work is undone.
    CREATE PROCEDURE work_as_lease() LANGUAGE plpgsql AS $$
    DECLARE
        ids text[];
        attempts int[];
        chance float;
    BEGIN
        LOOP
            SELECT array_agg(event_id), array_agg(attempt) INTO ids, attempts FROM idem_due('outbox', max_events => 7);
            COMMIT;
            EXIT WHEN ids IS NULL;
            chance := random();
            CONTINUE WHEN chance < 0.1;
            BEGIN
                IF chance < 0.2 THEN
                    PERFORM idem_release_many('outbox', 'send', ids, errors => ids, attempts => attempts);
                ELSE
                    INSERT INTO worked SELECT 'outbox', unnest(ids);
                    PERFORM idem_commit_many('outbox', 'send', ids, attempts => attempts);
                END IF;
            EXCEPTION WHEN SQLSTATE 'ID001' THEN
                NULL;
            END;
            COMMIT;
        END LOOP;
    END $$;
});

# Events in three generations: received ones, failed ones, and leases that ran out; among them many that are settled.
my $events = 1000;
foreach my $generation (1 .. 3)
{
    $node->safe_psql(
        'postgres', qq{
        SELECT count(idem_receive('inbox', 'book', 'received $generation ' || i)),
               count(idem_receive('outbox', 'send', 'received $generation ' || i)),
               count(idem_release('inbox', 'book', 'failed $generation ' || i, error => 'no')),
               count(idem_accept('inbox', 'book', 'done $generation ' || i)),
               count(idem_accept('outbox', 'send', 'done $generation ' || i)),
               count(idem_acquire('outbox', 'send', 'claimed $generation ' || i, hot_window => '1 microsecond'))
        FROM generate_series(1, $events / 2) i;
        } . ($generation < 3 ? q{CALL idem_rotate('inbox'); CALL idem_rotate('outbox');} : ''));
}

$node->pgbench('--no-vacuum --client=8 --transactions=1',
    0, [qr/processed: 8\/8/], [qr/^$/], 'eight callers at the same time, as the ring turns',
    {   '150_transaction@7' => 'CALL work_in_transaction();',
        '150_turn_inbox@1' => "CALL idem_rotate('inbox');\nCALL work_in_transaction();" });
$node->pgbench('--no-vacuum --client=8 --transactions=1',
    0, [qr/processed: 8\/8/], [qr/^$/], 'eight callers, of leases',
    {   '150_lease@7' => 'CALL work_as_lease();',
        '150_turn_outbox@1' => "CALL idem_rotate('outbox');\nCALL work_as_lease();" });

# Leases that nobody settled are due when they have run out.
my $unsettled = q{SELECT count(*) FROM outbox WHERE state <> 'done'};
foreach my $try (1 .. 1000)
{
    last if $node->safe_psql('postgres', $unsettled) == 0;
    usleep(20_000);
    $node->safe_psql('postgres', 'CALL work_as_lease()');
}

foreach my $dedup ('inbox', 'outbox')
{
    is($node->safe_psql('postgres', "SELECT count(*) FROM $dedup WHERE state <> 'done'"), 0, "$dedup: none forgotten");
    is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT event_id) FROM worked WHERE dedup = '$dedup'"),
        3 * $events . '|' . 3 * $events, "$dedup: each worked on, and none twice");
    is( $node->safe_psql(
            'postgres',
            "SELECT count(*) FROM $dedup WHERE event_id LIKE 'done%' OR event_id IN (SELECT event_id FROM worked)"),
        4.5 * $events, "$dedup: each remembered, in one generation");
}

$node->stop;
done_testing();
