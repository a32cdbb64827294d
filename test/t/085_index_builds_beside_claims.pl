# An index of a partition may be built, rebuilt and dropped concurrently while sessions go on claiming: in every phase
# events are claimed once, and in the end the index has every row.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("autovacuum = off\nidem.backoff_jitter = 0");
my (undef, undef, $no_amcheck) = $node->psql('postgres', 'CREATE EXTENSION amcheck');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('outbox', mode => 'lease', generations => 3);
    SELECT idem_accept('outbox', 'send', 'sealed ' || n) FROM generate_series(1, 100) n;
    CALL idem_rotate('outbox');
    SELECT idem_accept('outbox', 'send', 'current ' || n) FROM generate_series(1, 100) n;
});

my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
my $holder = $node->background_psql('postgres');
my $next_holder = $node->background_psql('postgres');

sub acquire
{
    my ($session, $event) = @_;
    return $session->query_safe("SELECT outcome, attempt FROM idem_acquire('outbox', 'send', '$event')");
}

# The builder waits for whoever has a transaction with a claim and a snapshot open.
sub hold
{
    my ($session, $event) = @_;
    $session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
    is(acquire($session, $event), 'acquired|1', "$event: held open");
    return;
}

sub claims_are_exact
{
    my ($what) = @_;
    my ($first, $second) = @sessions;
    my $settle = q{SELECT idem_commit('outbox', 'send', '%s', attempt => %d, result => '1')};

    is(acquire($first, "$what, new"), 'acquired|1', "$what: new event");
    is(acquire($second, "$what, new"), 'busy|1', "$what: lease runs");
    $second->query_safe(sprintf($settle, "$what, new", 1));
    is(acquire($first, "$what, new"), 'duplicate|1', "$what: settled");

    $first->query_safe("SELECT idem_release('outbox', 'send', '$what, failed', error => 'no route')");
    is(acquire($second, "$what, failed"), 'acquired|2', "$what: retake");
    $first->query_safe(sprintf($settle, "$what, failed", 2));
    is(acquire($_, "$what, failed"), 'duplicate|2', "$what: retake settled") foreach @sessions;

    is(acquire($second, "$_ 7"), 'duplicate|1', "$what: duplicate of the $_ generation") foreach 'sealed', 'current';
    return;
}

# Runs a command which builds or drops an index. Where it waits, as told by a condition for each wait, claims go on, and
# then it goes on to the next.
sub run_beside_claims
{
    my ($command, @waits) = @_;
    hold($holder, "$command, before");
    my $builder = $node->background_psql('postgres');
    $builder->query_until(qr/started/, "\\echo started\n$command;\n");
    foreach my $wait (@waits)
    {
        my ($what, $condition) = @$wait;
        $node->poll_query_until('postgres', "SELECT count(*) = 1 FROM $condition") or die "no wait: $what";
        hold($next_holder, "$command, $what");
        claims_are_exact("$command, $what");
        $holder->query_safe('COMMIT');
        ($holder, $next_holder) = ($next_holder, $holder);
    }
    $holder->query_safe('COMMIT');
    $builder->query_safe('SELECT 1');
    $builder->quit;
    claims_are_exact("$command, done");
    return;
}

sub has_every_row
{
    my ($table, $index) = @_;
    is( $node->safe_psql(
            'postgres', "SELECT indisvalid, indisready, indislive FROM pg_index WHERE indexrelid = '$index'::regclass"),
        't|t|t',
        "$index is valid");
    is($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT key) FROM $table"),
        0, "$table has every event once");
  SKIP:
    {
        skip 'amcheck is not installed', 1 if $no_amcheck ne '';
        is($node->safe_psql('postgres', "SELECT bt_index_check('$index', heapallindexed => true)"),
            '', "$index has every row");
    }
    return;
}

sub phase
{
    my ($phase) = @_;
    return [ $phase => "pg_stat_progress_create_index WHERE phase = '$phase'" ];
}

my @building = map { phase($_) } 'waiting for writers before build', 'waiting for writers before validation',
  'waiting for old snapshots';
my @replacing = map { phase($_) } 'waiting for readers before marking dead', 'waiting for readers before dropping';

# Every claim changes this column, so none of its updates may leave the index alone.
run_beside_claims('CREATE INDEX CONCURRENTLY added ON outbox_g1 (expires_at, claimed_at)', @building);
has_every_row('outbox_g1', 'added');
run_beside_claims('REINDEX INDEX CONCURRENTLY outbox_g1_pkey', @building, @replacing);
has_every_row('outbox_g1', 'outbox_g1_pkey');
run_beside_claims('REINDEX INDEX CONCURRENTLY outbox_g1_claimable_at_idx', @building, @replacing);
has_every_row('outbox_g1', $_) foreach 'added', 'outbox_g1_claimable_at_idx';
run_beside_claims(
    'DROP INDEX CONCURRENTLY added',
    [   'waiting before it is dead' => q{pg_index WHERE indexrelid = 'added'::regclass AND NOT indisvalid AND indislive}
    ],
    [ 'waiting before it is gone' => q{pg_index WHERE indexrelid = 'added'::regclass AND NOT indislive} ]);
has_every_row('outbox_g1', 'outbox_g1_pkey');

$_->quit foreach @sessions, $holder, $next_holder;
$node->stop;
done_testing();
