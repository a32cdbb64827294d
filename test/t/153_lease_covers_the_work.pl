# With the numbers of README (a hot window of a minute; one event a call, or ten): while the work on an event takes less
# than the hot window, nothing is sent twice by two workers who take turns. Time passes by setting it back in the rows.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("fsync = off");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('jobs', hot_window => '1 minute');
    SELECT idem_set_policy('jobs', handler => 'bot-reply', mode => 'lease', max_attempts => 3);
    CREATE TABLE sent (event_id text);});

sub pass_time
{
    my ($seconds) = @_;
    $node->safe_psql('postgres',
        "UPDATE jobs SET claimable_at = claimable_at - interval '$seconds s' WHERE state = 'processing'");
}

sub take
{
    my ($max_events) = @_;
    return [ map { [ split /\|/ ] } split /\n/,
        $node->safe_psql('postgres', "SELECT event_id, attempt FROM idem_due('jobs', 'bot-reply', $max_events)") ];
}

sub send_message
{
    my ($event) = @_;
    pass_time(55);
    $node->safe_psql(
        'postgres', qq{
        INSERT INTO sent VALUES ('$event->[0]');
        SELECT idem_commit('jobs', 'bot-reply', '$event->[0]', attempt => $event->[1]);});
}

foreach my $max_events (1, 10)
{
    $node->safe_psql('postgres', "SELECT idem_receive('jobs', 'bot-reply', '$max_events-' || i) FROM generate_series(1, 20) i");
    for (my $one = take($max_events); @$one; $one = take($max_events))
    {
        my $two = take($max_events);    # the other worker, who begins at the same moment
        foreach my $i (0 .. $max_events - 1)
        {
            send_message($one->[$i]);
            $node->safe_psql(
                'postgres', qq{
                INSERT INTO sent VALUES ('$two->[$i][0]');
                SELECT idem_commit('jobs', 'bot-reply', '$two->[$i][0]', attempt => $two->[$i][1]);}) if $two->[$i];
        }
    }
    is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT event_id) FROM sent WHERE event_id LIKE '$max_events-%'"),
        '20|20', "$max_events a call: each is sent, and none twice");
}

# A third worker finds nothing of a batch that is being worked on in order.
$node->safe_psql('postgres', q{SELECT idem_receive('jobs', 'bot-reply', 'late-' || i) FROM generate_series(1, 10) i});
my $batch = take(10);
my $stolen = 0;
foreach my $event (@$batch)
{
    send_message($event);
    $stolen += @{ take(10) };
}
is($stolen, 0, 'nothing of a batch is due while its worker is at those before it');

# With heartbeats the work may take longer. A worker that dies leaves nothing dead that was never tried.
$node->safe_psql('postgres', q{SELECT idem_receive('jobs', 'bot-reply', 'slow-' || i) FROM generate_series(1, 4) i});
$batch = take(10);
my $ids = join ',', map { $_->[0] } @$batch;
my $attempts = join ',', map { $_->[1] } @$batch;
foreach (1 .. 5)
{
    pass_time(50);
    is($node->safe_psql('postgres',
            "SELECT bool_and(extended) FROM idem_extend_many('jobs', 'bot-reply', '{$ids}', attempts => '{$attempts}')"),
        't', 'all leases are renewed');
}
pass_time(3600);
is($node->safe_psql('postgres', q{SELECT count(*) FROM idem_dead_letters('jobs')}), 0, 'none is dead');
my $alone = 0;
for (my $due = take(10); @$due; $due = take(10))
{
    $alone += @$due == 1;
    send_message($due->[0]);
}
is($alone, 4, 'what ran out comes alone');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT event_id) FROM sent'), '54|54', 'and each is sent once');

$node->stop;
done_testing();
