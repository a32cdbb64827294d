# Nobody who drops, renames or copies a database has to wait for idem, nor is refused because of it: between passes nothing
# is connected to the database, and a pass that takes its time gives way.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge_naptime = 1
    autovacuum = off
    fsync = off
});
$node->safe_psql('postgres', 'CREATE DATABASE shop');
$node->safe_psql('shop',
    q{CREATE EXTENSION idem; SELECT idem_create_table('inbox', hot_window => '1 ms', cold_window => '1 second')});

my $client = $node->background_psql('postgres');
my $launcher = $client->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'idem launcher'});

# Passes come as fast as the launcher can start them, and no command is refused.
my $log_start = -s $node->logfile;
foreach my $round (1 .. 5)
{
    $node->reload;
    $client->query_safe($_)
      foreach "CREATE DATABASE copy_$round TEMPLATE shop", 'ALTER DATABASE shop RENAME TO renamed',
      'ALTER DATABASE renamed RENAME TO shop', "DROP DATABASE copy_$round";
}
unlike(slurp_file($node->logfile, $log_start), qr/ is being accessed by other users/,
    'CREATE DATABASE TEMPLATE, RENAME and DROP DATABASE beside passes');

$node->append_conf('postgresql.conf', 'idem.databases = shop');

# Holds a worker up while it is connected to the database: connecting reads the settings of the database. The session that
# waits for this must be there before.
my $locker = $node->background_psql('postgres');
$locker->query_safe("SET statement_timeout = '${PostgreSQL::Test::Utils::timeout_default}s'");
my $await_worker = q{
    DO $$ BEGIN
        WHILE NOT EXISTS (SELECT FROM pg_locks WHERE relation = 'pg_db_role_setting'::regclass AND NOT granted) LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
    END $$};

sub gives_way_to
{
    my ($command) = @_;
    my $start = -s $node->logfile;
    $locker->query_safe('BEGIN; LOCK TABLE pg_db_role_setting IN ACCESS EXCLUSIVE MODE');
    $node->reload;
    $locker->query_safe($await_worker);
    $client->query_safe($command);
    $locker->query_safe('ROLLBACK');
    like(slurp_file($node->logfile, $start), qr/purge of database "shop" gives way/, "worker gives way: $command");
    return;
}

gives_way_to('CREATE DATABASE copied TEMPLATE shop');
$client->query_safe('DROP DATABASE copied');
gives_way_to('ALTER DATABASE shop RENAME TO renamed');
$client->query_safe('DROP DATABASE renamed');
is($client->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'idem launcher'}),
    $launcher, 'launcher is the same all the time');
$_->quit foreach $client, $locker;

$node->stop;
done_testing();
