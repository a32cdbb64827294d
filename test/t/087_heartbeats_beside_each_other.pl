# A lease that several sessions extend at the same time is never "not there": a look-up which an update outran must look again
# (docs/storage.md, "Looking up"). Being outrun by an open transaction is ID001, and no fault here.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('synchronous_commit = off');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('outbox', mode => 'lease');
    SELECT idem_acquire('outbox', 'bot-reply', 'e');
    CREATE PROCEDURE beat(beats int) LANGUAGE plpgsql AS $$
    BEGIN
        FOR i IN 1 .. beats LOOP
            BEGIN
                PERFORM idem_extend('outbox', 'bot-reply', 'e', attempt => 1);
            EXCEPTION WHEN SQLSTATE 'ID001' THEN
                NULL;
            END;
            COMMIT;
        END LOOP;
    END $$;
});

# Without the second look some four in a thousand beats raise ID002, which ends pgbench's client.
$node->pgbench('--no-vacuum --client=4 --transactions=10',
    0, [qr/processed: 40\/40/], [qr/^$/], 'no heartbeat says ID002', { '087_beat' => 'CALL beat(500);' });
is($node->safe_psql('postgres', 'SELECT attempt, state FROM outbox'), '1|processing', 'the claim is still held');

$node->stop;
done_testing();
