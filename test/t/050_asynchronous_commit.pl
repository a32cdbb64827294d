# With synchronous_commit = off a crash may lose the latest commits; but claim and work are lost or kept together, so
# that the next delivery does what is missing and nothing else.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("synchronous_commit = off\nwal_writer_delay = 10s");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox');
    SELECT idem_create_table('outbox', mode => 'lease');
    CREATE TABLE ledger (event_id int, cents int);
    CHECKPOINT;
});

# The work is in the same statement as the claim.
my $deliver = q{
    WITH work AS (
        INSERT INTO ledger SELECT event_id, 100 FROM generate_series(%1$d, %2$d) event_id, LATERAL
            idem_accept('inbox', 'book', event_id::text, result => '{"cents": 100}') claim
        WHERE claim.acquired
        RETURNING 1)
    SELECT count(*) FROM work};

my $client = $node->background_psql('postgres');
my $another = $node->background_psql('postgres');
my $events = 40;
foreach my $event (1 .. $events)
{
    $client->query_safe(sprintf($deliver, $event, $event));
    $client->query_safe("SELECT outcome FROM idem_acquire('outbox', 'send', '$event', hot_window => '1 microsecond')");
}
is($another->query_safe(sprintf($deliver, 1, $events)), 0, 'others are told duplicate before the commit is on disk');
$node->stop('immediate');
$_->quit foreach $client, $another;
$node->start;

my $kept = $node->safe_psql('postgres', 'SELECT count(*) FROM inbox');
note "$kept of $events commits were on disk";
is( $node->safe_psql('postgres', 'SELECT event_id FROM inbox ORDER BY event_id::int'),
    $node->safe_psql('postgres', 'SELECT event_id FROM ledger ORDER BY event_id'),
    'claims and work were lost or kept together');
is($node->safe_psql('postgres', 'SELECT coalesce(max(event_id), 0) FROM ledger'), $kept,
    'what was lost are the latest');
is( $node->safe_psql('postgres', sprintf($deliver, 1, $events)),
    $events - $kept,
    'next delivery does the work that was lost');
is($node->safe_psql('postgres', sprintf($deliver, 1, $events)), 0, 'delivery after it does nothing');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT event_id) FROM ledger'),
    "$events|$events", 'all work is done once');

# In lease mode a lost claim is simply acquired again, one that was kept is taken over.
is( $node->safe_psql(
        'postgres', qq{
        SELECT count(*) FROM generate_series(1, $events) event,
            LATERAL idem_lookup('outbox', 'send', event::text) remembered,
            LATERAL idem_acquire('outbox', 'send', event::text) claim
        WHERE acquired AND claim.attempt = coalesce(remembered.attempt, 0) + 1}),
    $events,
    'leases: attempts go on from what is on disk');

$node->stop;
done_testing();
