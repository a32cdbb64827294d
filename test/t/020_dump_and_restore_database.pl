# A dump of a database has all that idem knows: restored into a fresh database, duplicates are duplicates there,
# unsettled claims are unsettled, and rings and policies are what they were.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("autovacuum = off\nidem.backoff_jitter = 0");

# The extension and the dedup tables are not where a search_path finds them, and one has a name that must be quoted.
$node->safe_psql(
    'postgres', q{
    CREATE ROLE shop LOGIN;
    CREATE ROLE shop_application LOGIN;
    CREATE DATABASE source OWNER shop;
    \c source
    CREATE SCHEMA dedup;
    CREATE EXTENSION idem SCHEMA dedup;
    GRANT USAGE ON SCHEMA dedup TO PUBLIC;
    CREATE SCHEMA "Shop" AUTHORIZATION shop;
    SET SESSION AUTHORIZATION shop;
    SET search_path = pg_catalog;
    SELECT dedup.idem_create_table('"Shop"."In Box"', '5 minutes', '7 days', generations => 3);
    SELECT dedup.idem_create_table('"Shop".outbox', '1 hour', '20 days', mode => 'lease');
    SELECT dedup.idem_create_table('"Shop".hot', unlogged => true);
    SELECT dedup.idem_set_policy('"Shop"."In Box"', max_attempts => 3, backoff_base => '0');
    SELECT dedup.idem_set_policy('"Shop"."In Box"', 'notify', hot_window => '1 minute', mode => 'lease',
        on_unavailable => 'allow');
    SELECT dedup.idem_create_table('"Shop".dropped');
    SELECT dedup.idem_set_policy('"Shop".dropped', 'notify', max_attempts => 3);
    DROP TABLE "Shop".dropped;
    GRANT USAGE ON SCHEMA "Shop" TO shop_application;
    GRANT SELECT, INSERT, UPDATE ON "Shop"."In Box", "Shop".outbox, "Shop".hot TO shop_application;

    SELECT dedup.idem_accept('"Shop"."In Box"', 'book', 'settled in generation 0', result => '{"cents": 100}',
        fingerprint => dedup.idem_fingerprint('cents=100'::text));
    SELECT dedup.idem_accept('"Shop"."In Box"', 'book', 'settled with a batch', batch => 'resend');
    SELECT dedup.idem_acquire('"Shop".outbox', 'send', 'claimed in generation 0', owner => 'delivery 1',
        payload => '{"to": "A"}');
    SELECT dedup.idem_accept('"Shop".hot', 'book', 'settled');
    CALL dedup.idem_rotate('"Shop"."In Box"');
    CALL dedup.idem_rotate('"Shop".outbox');
    SELECT dedup.idem_accept('"Shop"."In Box"', 'book', 'settled in generation 1');
    SELECT dedup.idem_release('"Shop"."In Box"', 'book', 'failed', error => 'no balance');
    SELECT dedup.idem_acquire('"Shop".outbox', 'send', 'claimed in generation 1');
    SELECT dedup.idem_acquire('"Shop".outbox', 'send', 'run out', hot_window => '1 microsecond');
});

# What all of idem's and the user's tables hold.
sub contents
{
    my ($database) = @_;
    return $node->safe_psql(
        $database, q{
        SELECT * FROM dedup.idem_registry ORDER BY dedup::text;
        SELECT * FROM dedup.idem_handler_policy ORDER BY dedup::text, handler;
        SELECT * FROM dedup.idem_control ORDER BY dedup::text;
        SELECT * FROM "Shop"."In Box" ORDER BY key;
        SELECT * FROM "Shop".outbox ORDER BY key;
        SELECT * FROM "Shop".hot ORDER BY key;
        SELECT relkind, relpersistence, count(*) FROM pg_class WHERE relnamespace = '"Shop"'::regnamespace
            GROUP BY relkind, relpersistence ORDER BY relkind, relpersistence;
    });
}

sub restored_database_goes_on
{
    my ($database, $how) = @_;

    my $application = $node->background_psql($database, extra_params => [ '--username', 'shop_application' ]);
    my $acquire = sub {
        my ($arguments) = @_;
        return $application->query_safe("SELECT outcome, attempt, result FROM dedup.idem_acquire($arguments)");
    };
    my $inbox = q{'"Shop"."In Box"', 'book'};
    my $outbox = q{'"Shop".outbox', 'send'};
    is($acquire->("$inbox, 'settled in generation 0'"), 'duplicate|1|{"cents": 100}',
        "$how: duplicate with its result");
    is($acquire->("$inbox, 'settled in generation 0', fingerprint => dedup.idem_fingerprint('cents=1'::text)"),
        'conflict|1|', "$how: conflict");
    is($acquire->("$inbox, 'settled in generation 1'"), 'duplicate|1|', "$how: duplicate of the current generation");
    is($acquire->("$inbox, 'settled with a batch', 'resend'"), 'duplicate|1|', "$how: duplicate with a batch");
    is($acquire->(q{'"Shop".hot', 'book', 'settled'}), 'duplicate|1|', "$how: duplicate of an unlogged table");
    is($acquire->("$outbox, 'claimed in generation 0', owner => 'delivery 1'"),
        'acquired|1|', "$how: lease of its owner");
    is($acquire->("$outbox, 'run out'"), 'acquired|2|', "$how: lease that ran out is taken over");
    is($acquire->(q{'"Shop"."In Box"', 'notify', 'new'}), 'acquired|1|', "$how: new event of a handler with a policy");
    is($acquire->(q{'"Shop"."In Box"', 'notify', 'new'}), 'busy|1|', "$how: it is the lease that its policy says");

    foreach my $event ('claimed in generation 0', 'claimed in generation 1')
    {
        is($acquire->("$outbox, '$event'"), 'busy|1|', "$how: lease $event runs");
        $application->query_safe("SELECT dedup.idem_commit($outbox, '$event', attempt => 1)");
        is($acquire->("$outbox, '$event'"), 'duplicate|1|', "$how: lease $event is settled");
    }
    $application->quit;

    my $owner = $node->background_psql($database, extra_params => [ '--username', 'shop' ]);
    my $accept = sub {
        my ($table, $event) = @_;
        return $owner->query_safe("SELECT outcome, attempt FROM dedup.idem_accept('$table', 'book', '$event')");
    };
    my %attempt_of = (failed => 2, new => 1);
    is($accept->('"Shop"."In Box"', $_), "acquired|$attempt_of{$_}", "$how: $_ event is acquired")
      foreach keys %attempt_of;
    $owner->query_safe(q{CALL dedup.idem_rotate('"Shop"."In Box"')});
    is($accept->('"Shop"."In Box"', $_), "duplicate|$attempt_of{$_}", "$how: $_ event is remembered")
      foreach keys %attempt_of;
    is( $owner->query_safe(
            q{SELECT oldest_generation, current_generation FROM dedup.idem_control
              WHERE dedup = '"Shop"."In Box"'::regclass}),
        '0|2',
        "$how: ring turns");
    $owner->query_safe(q{SELECT dedup.idem_create_table('"Shop".another')});
    is($accept->('"Shop".another', 'new'), 'acquired|1', "$how: owner makes another dedup table");
    $owner->quit;
    return;
}

my $folder = PostgreSQL::Test::Utils::tempdir;
my $contents = contents('source');
like($contents, qr/^\d+\|transaction/m, 'registry still has the row of a dropped table');
like($contents, qr/^\d+\|notify\|/m, 'and that of its handler');
like($contents, qr/^"Shop"\."In Box"\|notify\|lease\|00:01:00\|.*\|allow\|/m, 'a handler has a policy');
$contents =~ s/^\d+\|.*\n//mg;

# Who dumps, what is passed to pg_dump, and how it is restored.
my @psql = ('psql', '--no-psqlrc', '--set=ON_ERROR_STOP=1', '--quiet', '--file');
my @pg_restore = ('pg_restore', '--exit-on-error');
my %ways = (
    'plain dump' => [ 'postgres', [], \@psql ],
    'custom dump' => [ 'postgres', ['--format=custom'], \@pg_restore ],
    'dump by the owner' => [ 'shop', ['--format=custom'], \@pg_restore ]);
foreach my $how (sort keys %ways)
{
    my ($role, $options, $restore) = @{ $ways{$how} };
    my $file = "$folder/dump";
    my $copy = $how =~ s/ /_/gr;

    $node->command_ok([ 'pg_dump', '--username', $role, @$options, '--file', $file, 'source' ], "$how: pg_dump");
    $node->safe_psql('postgres', "CREATE DATABASE $copy OWNER shop TEMPLATE template0");
    $node->command_ok([ @$restore, $file, '--dbname', $copy ], "$how: $restore->[0]");
    is(contents($copy), $contents, "$how: same policies, rings and rows, without the dropped table's");
    restored_database_goes_on($copy, $how);
}

$node->stop;
done_testing();
