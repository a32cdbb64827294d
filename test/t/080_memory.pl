# A transaction may hold ten thousand claims with no setting raised, and a session needs memory for the claims that are
# open and not for those it has settled, in whatever savepoints.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('max_prepared_transactions = 1');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox');
    SELECT idem_create_table('outbox', mode => 'lease');
    SELECT idem_create_table('forgetful', '1 microsecond', '2 microseconds', generations => 3);
    CREATE TABLE plain (event_id text PRIMARY KEY, version int);
});
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->set_query_timer_restart;
$session->query_safe('\set VERBOSITY verbose');

sub used_bytes
{
    return $session->query_safe('SELECT sum(used_bytes) FROM pg_backend_memory_contexts');
}

# Runs statements of PL/pgSQL for so many events of the batch.
my $batch = 0;

sub run_for_events
{
    my ($count, $statements) = @_;
    my $loop = "FOR i IN 1 .. $count LOOP event := '$batch ' || i; $statements END LOOP;";
    $session->query_safe("DO \$\$ DECLARE event text; BEGIN $loop END \$\$");
    return;
}

my $savepoint = 'BEGIN %s EXCEPTION WHEN division_by_zero THEN NULL; END;';
my $acquire = q{PERFORM idem_acquire('inbox', 'book', event);};
my $commit = q{PERFORM idem_commit('inbox', 'book', event);};
my $commit_with_result = q{PERFORM idem_commit('inbox', 'book', event, result => '1');};
my $events = 10_000;

is($session->query_safe('SHOW max_locks_per_transaction'), 64, 'locks per transaction are the default');
my %claims = (
    'claims' => $acquire,
    'claims, each in a savepoint of its own' => sprintf($savepoint, $acquire),
    'claims and settled ones between them' => "$acquire PERFORM idem_accept('inbox', 'book', event || ' too');");
foreach my $what (sort keys %claims)
{
    my $before = used_bytes();
    $batch++;
    $session->query_safe('BEGIN');
    run_for_events($events, $claims{$what});
    $session->query('COMMIT');
    like(
        $session->{stderr},
        qr/ERROR:  ID003: .*\nDETAIL:  The transaction leaves $events claims unsettled/,
        "$events $what are open");
    $session->{stderr} = '';

    $session->query_safe('BEGIN');
    run_for_events($events, $claims{$what});
    run_for_events($events, $commit);
    $session->query_safe(q{PREPARE TRANSACTION 'claims'});
    $session->query_safe(q{COMMIT PREPARED 'claims'});
    is($session->query_safe("SELECT count(*) FROM inbox WHERE event_id ~ '^$batch \\d+\$'"),
        $events, "$events $what are settled");
    cmp_ok(used_bytes() - $before, '<', 1024 * 1024, "$events $what: their memory is given back");
}
$session->query_safe('BEGIN');
run_for_events($events, q{PERFORM idem_acquire('outbox', 'send', event);});
$session->query_safe('COMMIT');
is($session->query_safe('SELECT count(*) FROM outbox'), $events, "$events leases in one transaction");

# How much more a transaction needs after many events than after a few.
sub growth_over_events
{
    my ($count, $statements) = @_;
    $session->query_safe('BEGIN');
    $batch++;
    run_for_events(1000, $statements);
    my $before = used_bytes();
    $batch++;
    run_for_events($count, $statements);
    my $growth = used_bytes() - $before;
    $session->query_safe('COMMIT');
    return $growth;
}

# The server itself remembers, until the transaction ends, every savepoint that wrote and every row that was written and
# changed again; so the same is done to a plain table, and idem may need three bytes an event more.
my $rolled_back = q{BEGIN %s RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END;};
my $insert = 'INSERT INTO plain VALUES (event, 0);';
my $update = 'UPDATE plain SET version = version + 1 WHERE event_id = event;';
my @cases = (
    [ 200_000, 'claimed and settled', "$acquire $commit", '' ],
    [   200_000,
        'claimed and settled in a savepoint',
        sprintf($savepoint, "$acquire $commit"),
        sprintf($savepoint, $insert) ],
    [   200_000,
        'claimed, and settled in a savepoint',
        $acquire . sprintf($savepoint, $commit_with_result),
        $insert . sprintf($savepoint, $update) ],
    [ 50_000, 'claimed in a savepoint which is rolled back', sprintf($rolled_back, $acquire), '' ],
    [   50_000,
        'claimed, settled in a savepoint which is rolled back, and settled',
        $acquire . sprintf($rolled_back, $commit) . $commit, '' ],
    [ 50_000, 'settled with a result', "$acquire $commit_with_result", "$insert $update" ],
    [ 50_000, 'accepted again', q{PERFORM idem_accept('inbox', 'book', 'duplicate');}, '' ],
    [   50_000,
        'leased and settled',
        q{PERFORM idem_acquire('outbox', 'send', event); PERFORM idem_commit('outbox', 'send', event, attempt => 1);},
        "$insert $update" ]);
$session->query_safe(q{SELECT idem_accept('inbox', 'book', 'duplicate', result => '1')});
foreach my $case (@cases)
{
    my ($count, $what, $statements, $plain_statements) = @$case;
    my $growth = growth_over_events($count, $statements);
    my $plain_growth = $plain_statements ? growth_over_events($count, $plain_statements) : 0;
    cmp_ok($growth, '<', $plain_growth + 3 * $count, "$count events $what: memory does not grow");
}

# With each turn of the ring a session loads what it knows of the table anew.
sub growth_over_turns
{
    my ($count) = @_;
    my $before = used_bytes();
    my $turn = q{CALL idem_rotate('forgetful'); PERFORM idem_accept('forgetful', 'book', i::text); COMMIT;};
    $session->query_safe("DO \$\$ BEGIN FOR i IN 1 .. $count LOOP $turn END LOOP; END \$\$");
    return used_bytes() - $before;
}
growth_over_turns(10);
cmp_ok(growth_over_turns(200), '<', 64 * 1024, '200 turns of the ring: memory does not grow');
is($session->query_safe(q{SELECT current_generation FROM idem_control WHERE dedup = 'forgetful'::regclass}),
    210, 'ring has turned');

# So it does with each change of a policy, within one transaction too.
sub growth_over_policies
{
    my ($count) = @_;
    my $change = q{PERFORM idem_set_policy('inbox', hot_window => i * interval '1 second'); PERFORM idem_accept('inbox', 'book', 'policy ' || i);};
    $session->query_safe('BEGIN');
    $session->query_safe("DO \$\$ BEGIN FOR i IN 1 .. 10 LOOP $change END LOOP; END \$\$");
    my $before = used_bytes();
    $session->query_safe("DO \$\$ BEGIN FOR i IN 11 .. 10 + $count LOOP $change END LOOP; END \$\$");
    my $growth = used_bytes() - $before;
    $session->query_safe('COMMIT');
    return $growth;
}
cmp_ok(growth_over_policies(300), '<', 1024 * 1024, '300 policies in one transaction: memory does not grow');

# However often a wait tries; what it needed is freed with its row at the latest, so it is asked beside it.
sub used_after_waiting
{
    my ($wait) = @_;
    return $session->query_safe(
        "SELECT used FROM (SELECT idem_acquire('outbox', 'send', 'held', wait => '$wait') AS answer,
            (SELECT sum(used_bytes) FROM pg_backend_memory_contexts) AS used OFFSET 0) AS waited");
}
$session->query_safe(q{SELECT idem_acquire('outbox', 'send', 'held')});
my $briefly = used_after_waiting('10 ms');
cmp_ok(used_after_waiting('3 s') - $briefly, '<', 8 * 1024, 'a long wait: memory does not grow');
$session->quit;

$node->stop;
done_testing();
