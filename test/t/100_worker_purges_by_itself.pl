# With idem preloaded, expired events go and rings turn by the worker alone, in every database that has dedup tables,
# whoever owns them and whatever kind they are; what it does is seen where an operator looks.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge_naptime = 1
    fsync = off
});
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach 'shop', '"Shop 2"', 'template_of_shops', 'closed', 'without';

# Each remembers for less than half a second.
my $windows = q{hot_window => '1 millisecond', cold_window => '400 milliseconds', generations => 3};

# The dedup tables, by database.
my %tables_of = (
    postgres => [ 'inbox', 'outbox', 'forgetful', '"schema of ""mine"""."Inbox"', 'owned', 'inherited', 'two_slots' ],
    shop => ['inbox'],
    '"Shop 2"' => ['inbox']);

$node->safe_psql(
    'postgres', qq{
    CREATE EXTENSION idem;
    CREATE SCHEMA "schema of ""mine""";
    CREATE ROLE nobody NOLOGIN;
    CREATE ROLE former NOLOGIN;
    GRANT CREATE ON SCHEMA public TO nobody, former;
    SELECT idem_create_table('inbox', $windows);
    SELECT idem_create_table('outbox', mode => 'lease', $windows);
    SELECT idem_create_table('forgetful', unlogged => true, $windows);
    SELECT idem_create_table('two_slots', hot_window => '1 ms', cold_window => '400 ms', generations => 2);
    SELECT idem_create_table('"schema of ""mine"""."Inbox"', $windows);
    SET ROLE nobody;
    SELECT idem_create_table('owned', $windows);
    SET ROLE former;
    SELECT idem_create_table('inherited', $windows);
    RESET ROLE;
    REASSIGN OWNED BY former TO nobody;
    DROP OWNED BY former;
    DROP ROLE former;
});

# A database's own settings do not keep the worker from writing, nor from being through in time.
$node->safe_psql(
    'shop', qq{
    CREATE SCHEMA elsewhere;
    CREATE EXTENSION idem SCHEMA elsewhere;
    SET search_path = elsewhere, public;
    SELECT idem_create_table('public.inbox', $windows);
    ALTER DATABASE shop SET default_transaction_read_only = on;
    ALTER DATABASE shop SET default_transaction_isolation = 'serializable';
    ALTER DATABASE shop SET search_path = elsewhere, public;
});
$node->safe_psql($_, "CREATE EXTENSION idem; SELECT idem_create_table('inbox', $windows)")
  foreach 'Shop 2', 'template_of_shops', 'closed';

sub accept_event
{
    my ($database, $table) = @_;
    $node->safe_psql(
        $database =~ s/"//gr, qq{
        SET default_transaction_read_only = off;
        SET default_transaction_isolation = 'read committed';
        SELECT FROM idem_accept('$table', 'book', 'remembered for a moment');
    });
    return;
}

sub is_purged
{
    my ($database, $table, $promise) = @_;
    ok( $node->poll_query_until(
            $database =~ s/"//gr, qq{
            SELECT NOT EXISTS (SELECT FROM $table)
               AND (SELECT oldest_generation > 0 FROM idem_control WHERE dedup = '$table'::regclass)}),
        $promise);
    return;
}

# Copies of these would go on being purged where the copy is, so nobody may touch them here.
accept_event($_, 'inbox') foreach 'template_of_shops', 'closed';
$node->safe_psql('postgres', q{
    ALTER DATABASE template_of_shops IS_TEMPLATE true;
    ALTER DATABASE closed ALLOW_CONNECTIONS false;
});

foreach my $database (sort keys %tables_of)
{
    accept_event($database, $_) foreach @{ $tables_of{$database} };
}
foreach my $database (sort keys %tables_of)
{
    is_purged($database, $_, "$database: $_ is purged") foreach @{ $tables_of{$database} };
}

# Twice, since the ring comes round.
accept_event('postgres', 'inbox');
is_purged('postgres', 'inbox', 'table is purged again');

is($node->safe_psql('template_of_shops', 'SELECT count(*) FROM inbox'), 1, 'template database is left alone');
$node->safe_psql('postgres', 'CREATE DATABASE copied TEMPLATE template_of_shops');
is_purged('copied', 'inbox', 'copy of a template database is purged');
$node->safe_psql('postgres', 'ALTER DATABASE closed ALLOW_CONNECTIONS true');
is_purged('closed', 'inbox', 'database that allows connections again is purged');

# What an operator sees.
is( $node->safe_psql(
        'postgres', q{
        SELECT datname, application_name, state, wait_event_type, wait_event FROM pg_stat_activity
        WHERE backend_type = 'idem launcher' AND wait_event_type = 'Extension'}),
    '|idem launcher|idle|Extension|' . ($node->pg_version >= 17 ? 'IdemLauncherMain' : 'Extension'),
    'launcher reports that it rests, without a database');
ok( $node->poll_query_until(
        'postgres', q{
        SELECT finished_at > now() - interval '1 minute' AND started_at <= finished_at AND tables = 7 AND failed_tables = 0
        FROM idem_worker_passes()}),
    'passes are shown');
is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_worker_progress()'), 0, 'nothing is in progress');
ok( $node->poll_query_until(
        'postgres', q{
        SELECT sum(n_tup_ins) > 0 AND sum(n_live_tup) = 0 FROM pg_stat_user_tables WHERE relname ~ '^inbox_g'}),
    'statistics tell that the partitions are empty');

$node->stop;
unlike(slurp_file($node->logfile), qr/ERROR|WARNING|PANIC|exited with exit code [2-9]|terminated by signal/,
    'log has nothing to complain of');
unlike(slurp_file($node->logfile), qr/without.*idem|idem.*without/, 'database without the extension is not mentioned');
done_testing();
