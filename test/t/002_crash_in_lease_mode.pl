# A crash between any two steps of a delivery in lease mode leaves the claim as the last COMMIT left it: its holder may
# still settle it unless somebody took it over, and no attempt that was committed is ever given out again.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('idem.backoff_jitter = 0');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('outbox', mode => 'lease');
    CREATE TABLE ledger (event_id text, cents int);
});

my $client = connect_client($node);
my @sessions = ($client);

# What a delivery does, step by step, and what the next acquire is answered if a crash comes after the step.
my $acquire = q{SELECT outcome, attempt FROM idem_acquire('outbox', 'send', '%s')};
my $work = q{INSERT INTO ledger VALUES ('%s', 100)};
my $commit = q{SELECT idem_commit('outbox', 'send', '%s', attempt => 1)};
my @steps = (
    [ 'acquire' => "BEGIN; $acquire" => 'acquired|1' ],
    [ 'its COMMIT' => 'COMMIT' => 'busy|1' ],
    [ 'the effect' => "BEGIN; $work" => 'busy|1' ],
    [ 'idem_commit' => $commit => 'busy|1' ],
    [ 'its COMMIT too' => 'COMMIT' => 'duplicate|1' ]);

# The claim's row may be in the generation where it is settled, or in a sealed one, from where settling moves it.
my @crashes;
foreach my $where ('current', 'sealed')
{
    foreach my $last (0 .. $#steps)
    {
        push @crashes,
          { event => "claim in the $where generation, crash after $steps[$last][0]", where => $where, last => $last };
    }
}

sub run_steps
{
    my ($crash, $first, $last) = @_;
    $last = $crash->{last} if $last > $crash->{last};
    $crash->{session}->query_safe(sprintf($_->[1], $crash->{event})) foreach @steps[ $first .. $last ];
}

foreach my $crash (@crashes)
{
    $crash->{session} = $node->background_psql('postgres');
    push @sessions, $crash->{session};
}
run_steps($_, 0, 1) foreach grep { $_->{where} eq 'sealed' } @crashes;
$client->query_safe("CALL idem_rotate('outbox')");
run_steps($_, 0, 1) foreach grep { $_->{where} eq 'current' } @crashes;
run_steps($_, 2, $#steps) foreach @crashes;

# Claims which end before the crash, and the attempt of the next one.
my $expire = q{SELECT outcome FROM idem_acquire('outbox', 'send', '%s', hot_window => '1 microsecond')};
my @ends = (
    [ 'run out' => [$expire] => 2 ],
    [ 'run out and taken over' => [ $expire, $expire ] => 3 ],
    [   'failed' => [ $acquire, q{SELECT idem_release('outbox', 'send', '%s', error => 'no route', attempt => 1)} ] => 2
    ],
    [ 'given back' => [ $acquire, q{SELECT idem_release('outbox', 'send', '%s', attempt => 1)} ] => 2 ],
    [   'settled and forgotten' =>
          [ $acquire, q{SELECT idem_commit('outbox', 'send', '%s', attempt => 1, cold_window => '1 microsecond')} ] => 2
    ]);
foreach my $end (@ends)
{
    my ($event, $queries) = @$end;
    $client->query_safe(sprintf($_, $event)) foreach @$queries;
}

# Claims which are taken over, settled or extended when the crash comes.
$client->query_safe(sprintf($expire, $_))  foreach 'crash in a takeover', 'crash after a takeover';
$client->query_safe(sprintf($acquire, $_)) foreach 'crash in a release', 'crash in a heartbeat';
my @halves = (
    sprintf($acquire, 'crash in a takeover'),
    q{SELECT idem_release('outbox', 'send', 'crash in a release', error => 'no route', attempt => 1)},
    q{SELECT idem_extend('outbox', 'send', 'crash in a heartbeat', attempt => 1)});
foreach my $half (@halves)
{
    my $session = $node->background_psql('postgres');
    push @sessions, $session;
    $session->query_safe("BEGIN; $half");
}
my $lease_end = q{SELECT claimable_at FROM idem_lookup('outbox', 'send', 'crash in a heartbeat')};
my $committed_lease_end = $client->query_safe($lease_end);

is($client->query_safe(sprintf($acquire, 'crash after a takeover')), 'acquired|2', 'claim taken over before the crash');

$node->stop('immediate');
$_->quit foreach @sessions;
$node->start;
$client = connect_client($node);

foreach my $crash (@crashes)
{
    my $event = $crash->{event};
    my $committed = $crash->{last} == $#steps;
    my $booked = "SELECT count(*) FROM ledger WHERE event_id = '$event'";

    is($client->query_safe($booked), $committed ? 1 : 0, "$event: work " . ($committed ? 'done' : 'not done'));
    is($client->query_safe(sprintf($acquire, $event)), $steps[ $crash->{last} ][2], "$event: next acquire");
    $client->query_safe('BEGIN; ' . sprintf("$work; $commit", $event, $event) . '; COMMIT') unless $committed;
    is($client->query_safe(sprintf($acquire, $event)), 'duplicate|1', "$event: acquire after its holder settled");
    is($client->query_safe($booked), 1, "$event: work done once");
    is($client->query_safe("SELECT count(*) FROM outbox WHERE event_id = '$event'"), 1, "$event: remembered once");
}

foreach my $end (@ends)
{
    my ($event, undef, $attempt) = @$end;
    is($client->query_safe(sprintf($acquire, $event)),
        "acquired|$attempt", "claim $event before the crash: next acquire");
}

is($client->query_safe(sprintf($acquire, 'crash in a release')), 'busy|1', 'crash in a release: claim still runs');
is($client->query_safe($lease_end), $committed_lease_end, 'crash in a heartbeat: lease ends when it did before');
is($client->query_safe(sprintf($acquire, 'crash in a takeover')), 'acquired|2',
    'crash in a takeover: claim taken over');
foreach my $event ('crash in a takeover', 'crash after a takeover')
{
    $client->query('BEGIN');
    $client->query_safe(sprintf($work, $event));
    $client->query(sprintf($commit, $event));
    like($client->{stderr}, qr/ERROR:  ID001/, "$event: first holder may not settle");
    $client->{stderr} = '';
    $client->query_safe('COMMIT');
    is($client->query_safe("SELECT count(*) FROM ledger WHERE event_id = '$event'"),
        0, "$event: its work is rolled back");
    is($client->query_safe("SELECT FROM idem_commit('outbox', 'send', '$event', attempt => 2)"),
        '', "$event: second holder settles");
}
$client->quit;

$node->stop;
done_testing();
