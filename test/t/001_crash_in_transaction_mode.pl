# A crash between any two steps of a delivery in transaction mode leaves nothing half done: afterwards the event is
# acquired again and the work was not done, or it is a duplicate and the work was done.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('idem.backoff_jitter = 0');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox');
    CREATE TABLE ledger (event_id text, cents int);

    CREATE FUNCTION deliver(event text) RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        claim idem_claim;
    BEGIN
        SELECT * INTO claim FROM idem_acquire('inbox', 'book', event);
        IF claim.acquired THEN
            INSERT INTO ledger VALUES (event, 100);
            PERFORM idem_commit('inbox', 'book', event, result => '{"cents": 100}');
        END IF;
        RETURN concat_ws(' ', claim.outcome, claim.attempt, claim.result);
    END $$;
});

# What a delivery does, step by step; each crash comes after one of them.
my @steps = (
    [ 'acquire' => q{SELECT outcome FROM idem_acquire('inbox', 'book', '%s')} ],
    [ 'the work' => q{INSERT INTO ledger VALUES ('%s', 100)} ],
    [ 'idem_commit' => q{SELECT idem_commit('inbox', 'book', '%s', result => '{"cents": 100}')} ],
    [ 'COMMIT' => q{COMMIT} ]);

# What is known of the event before, and the attempt of its next claim.
my %attempt_of = ('new event' => 1, 'failed event of a sealed generation' => 2);

# What of it the crash finds on disk: the changed pages, or only WAL.
my @on_disk = ('pages', 'WAL');

my @crashes;
foreach my $on_disk (@on_disk)
{
    foreach my $before (sort keys %attempt_of)
    {
        foreach my $last (0 .. $#steps)
        {
            my $event = "$before, crash after $steps[$last][0] with $on_disk on disk";
            push @crashes, { event => $event, before => $before, last => $last, on_disk => $on_disk };
        }
    }
}

my $client = $node->background_psql('postgres');
foreach my $crash (grep { $_->{before} ne 'new event' } @crashes)
{
    $client->query_safe("SELECT outcome FROM idem_release('inbox', 'book', '$crash->{event}', error => 'no balance')");
}
$client->query_safe("CALL idem_rotate('inbox')");

my @sessions = ($client);
foreach my $on_disk (@on_disk)
{
    foreach my $crash (grep { $_->{on_disk} eq $on_disk } @crashes)
    {
        my $session = $node->background_psql('postgres');
        push @sessions, $session;
        $session->query_safe('BEGIN');
        $session->query_safe(sprintf($_->[1], $crash->{event})) foreach @steps[ 0 .. $crash->{last} ];
    }
    $client->query_safe('CHECKPOINT') if $on_disk eq 'pages';
}

# Its COMMIT forces all WAL before it to disk.
$client->query_safe('CREATE TABLE anything ()');
$node->stop('immediate');
$_->quit foreach @sessions;

$node->start;
$client = $node->background_psql('postgres');
foreach my $crash (@crashes)
{
    my $event = $crash->{event};
    my $committed = $crash->{last} == $#steps;
    my $attempt = $attempt_of{ $crash->{before} };
    my $duplicate = qq(duplicate $attempt {"cents": 100});
    my $booked = "SELECT count(*) FROM ledger WHERE event_id = '$event'";

    is($client->query_safe($booked), $committed ? 1 : 0, "$event: work " . ($committed ? 'done' : 'not done'));
    is( $client->query_safe("SELECT deliver('$event')"),
        $committed ? $duplicate : "acquired $attempt",
        "$event: next delivery");
    is($client->query_safe("SELECT deliver('$event')"), $duplicate, "$event: delivery after it");
    is($client->query_safe($booked), 1, "$event: work done once");
    is($client->query_safe("SELECT count(*) FROM inbox WHERE event_id = '$event'"), 1, "$event: remembered once");
}
$client->quit;

$node->stop;
done_testing();
