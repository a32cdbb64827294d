# A prepared transaction keeps its claims through restart, crash and rotation: others are told busy until it is decided,
# then duplicate or acquired; what it prepared is never taken out of the ring meanwhile.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("max_prepared_transactions = 10\nautovacuum = off");
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', generations => 3);
    SELECT idem_create_table('outbox', generations => 3, mode => 'lease');
    SELECT idem_create_table('forgetful', '1 microsecond', '2 microseconds', generations => 3);
});

my $client;

# What others are answered about an event, without leaving anything behind.
sub acquire
{
    my ($table, $event) = @_;
    $client->query_safe('BEGIN');
    my $answer = $client->query_safe("SELECT outcome, attempt, result FROM idem_acquire('$table', 'h', '$event')");
    $client->query_safe('ROLLBACK');
    return $answer;
}

sub prepare
{
    my ($name, @statements) = @_;
    $client->query_safe($_) foreach 'BEGIN', @statements, "PREPARE TRANSACTION '$name'";
    return;
}

$client = connect_client($node);

# What is "kept" will be committed, what is "undone" rolled back.
foreach my $fate ('kept', 'undone')
{
    prepare(
        "claim $fate",
        "SELECT outcome FROM idem_acquire('inbox', 'h', 'claim $fate')",
        "SELECT idem_commit('inbox', 'h', 'claim $fate', result => '{\"cents\": 100}')");
    prepare("lease $fate", "SELECT outcome FROM idem_acquire('outbox', 'h', 'lease $fate')");

    $client->query_safe("SELECT outcome FROM idem_acquire('outbox', 'h', 'commit $fate')");
    $client->query_safe("SELECT outcome FROM idem_acquire('outbox', 'h', 'sealed commit $fate')");
    prepare("commit $fate", "SELECT idem_commit('outbox', 'h', 'commit $fate', attempt => 1)");
}

# It has expired before it is prepared.
prepare('claim expired', q{SELECT outcome FROM idem_accept('forgetful', 'h', 'claim expired')});

$client->query_safe('BEGIN');
$client->query_safe(q{SELECT outcome FROM idem_acquire('inbox', 'h', 'unsettled')});
is(sqlstate_of($client, q{PREPARE TRANSACTION 'unsettled'}), 'ID003', 'unsettled claim cannot be prepared');
is(acquire('inbox', 'unsettled'), 'acquired|1|', 'unsettled claim that was not prepared is gone');

# Settling a claim of a sealed generation moves it to the current one, both in the prepared transaction.
$client->query_safe("CALL idem_rotate('$_')") foreach 'inbox', 'outbox', 'forgetful';
foreach my $fate ('kept', 'undone')
{
    prepare("sealed commit $fate", "SELECT idem_commit('outbox', 'h', 'sealed commit $fate', attempt => 1)");
}

sub others_are_told_busy
{
    my ($when) = @_;
    foreach my $fate ('kept', 'undone')
    {
        like(acquire('inbox', "claim $fate"), qr/^busy/, "$when: claim is busy");
        like(acquire('outbox', "$_ $fate"), qr/^busy/, "$when: $_ is busy") foreach 'lease', 'commit', 'sealed commit';
        is(sqlstate_of($client, "SELECT idem_commit('outbox', 'h', '$_ $fate', attempt => 1)"),
            'ID001', "$when: $_ cannot be settled by others")
          foreach 'lease', 'commit', 'sealed commit';
    }
    like(acquire('forgetful', 'claim expired'), qr/^busy/, "$when: expired claim is busy");
    return;
}

others_are_told_busy('prepared');

$client->quit;
$node->restart;
$client = connect_client($node);
others_are_told_busy('restarted');

$client->query_safe('CHECKPOINT');
$node->stop('immediate');
$client->quit;
$node->start;
$client = connect_client($node);
others_are_told_busy('crashed');

# Slots are taken by what is prepared in generation 0, so the ring of 3 can turn once more and not again.
foreach my $table ('inbox', 'outbox', 'forgetful')
{
    my $ring = "SELECT oldest_generation, current_generation FROM idem_control WHERE dedup = '$table'::regclass";
    $client->query_safe("CALL idem_rotate('$table')");
    is($client->query_safe($ring), '0|2', "$table: prepared claims do not keep the next slot from being opened");
    my (undef, $stdout, $stderr) = $node->psql('postgres', "CALL idem_rotate('$table')");
    is($client->query_safe($ring), '0|2', "$table: generation with prepared claims is not retired");
    like(
        $stderr,
        qr/WARNING:  ring of dedup table "$table" could not turn\nDETAIL:  .*open transactions/,
        "$table: warning names the reason");
}
others_are_told_busy('rotated');

foreach my $what ('claim', 'lease', 'commit', 'sealed commit')
{
    $client->query_safe("COMMIT PREPARED '$what kept'");
    $client->query_safe("ROLLBACK PREPARED '$what undone'");
}
is(acquire('inbox', 'claim kept'), 'duplicate|1|{"cents": 100}', 'committed claim: duplicate with its result');
is(acquire('inbox', 'claim undone'), 'acquired|1|', 'rolled back claim: acquired');
is(acquire('outbox', 'lease kept'), 'busy|1|', 'committed lease: it runs');
is($client->query_safe(q{SELECT FROM idem_commit('outbox', 'h', 'lease kept', attempt => 1)}),
    '', 'committed lease: its holder settles');
is(acquire('outbox', 'lease undone'), 'acquired|1|', 'rolled back lease: acquired');
foreach my $what ('commit', 'sealed commit')
{
    is(acquire('outbox', "$what kept"), 'duplicate|1|', "committed $what: duplicate");
    is(acquire('outbox', "$what undone"), 'busy|1|', "rolled back $what: the lease runs");
    is($client->query_safe("SELECT FROM idem_commit('outbox', 'h', '$what undone', attempt => 1)"),
        '', "rolled back $what: its holder settles");
    is(acquire('outbox', "$what undone"), 'duplicate|1|', "rolled back $what: duplicate once settled");
}
is($client->query_safe(q{SELECT count(*), count(DISTINCT key) FROM outbox}), '5|5', 'every event is remembered once');

$client->query_safe(q{COMMIT PREPARED 'claim expired'});
is(acquire('forgetful', 'claim expired'), 'acquired|2|', 'committed claim that has expired: acquired anew');
$client->query_safe(q{CALL idem_rotate('forgetful')});
is( $client->query_safe(
        q{SELECT oldest_generation, current_generation FROM idem_control WHERE dedup = 'forgetful'::regclass}),
    '2|3',
    'generations are retired once nothing in them is prepared');
$client->quit;

$node->stop;
done_testing();
