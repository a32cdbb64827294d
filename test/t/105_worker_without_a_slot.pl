# Where max_worker_processes leaves no process to purge with, the launcher says so once and goes on trying; nothing but the
# purge is late.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    max_worker_processes = 2
    max_logical_replication_workers = 0
    idem.purge = off
    idem.purge_naptime = 1
    fsync = off
});
my $force_parallel = $node->pg_version >= 16 ? 'debug_parallel_query' : 'force_parallel_mode';
my $client = $node->background_psql('postgres');
$client->query_safe($_)
  foreach 'CREATE EXTENSION idem',
  q{SELECT idem_create_table('inbox', hot_window => '1 ms', cold_window => '400 ms', generations => 3)};

# A parallel query takes the one process that the launcher leaves.
sub take_slot
{
    my $session = $node->background_psql('postgres', on_error_stop => 0);
    $session->query_safe("SET $force_parallel = on");
    $session->query_until(qr/running/, "\\echo running\nSELECT pg_sleep(3600);\n");
    $node->poll_query_until('postgres',
        q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'parallel worker')})
      or die 'query does not run in parallel';
    return $session;
}

sub give_slot_back
{
    my ($session) = @_;
    $client->query_safe(q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity
                          WHERE backend_type = 'client backend' AND query LIKE 'SELECT pg_sleep%'});
    $session->quit;
    return;
}

sub set_purge
{
    my ($value) = @_;
    $node->append_conf('postgresql.conf', "idem.purge = $value");
    $node->reload;
    return;
}

# A launcher that tries again reports a new activity.
sub tries_again
{
    my $since = $client->query_safe(q{SELECT state_change FROM pg_stat_activity WHERE backend_type = 'idem launcher'});
    return $node->poll_query_until('postgres',
        "SELECT state_change > '$since' FROM pg_stat_activity WHERE backend_type = 'idem launcher'");
}

my $message = qr/no background worker slot is free/;
my $launcher = $client->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'idem launcher'});
foreach my $shortage (1, 2)
{
    my $session = take_slot();
    my $start = -s $node->logfile;
    set_purge('on');
    ok($node->wait_for_log($message, $start), "shortage $shortage is logged");
    is($client->query_safe("SELECT outcome FROM idem_accept('inbox', 'book', 'forgotten $shortage')"),
        'acquired', "shortage $shortage: events are accepted");
    ok(tries_again(), "shortage $shortage: launcher tries again") foreach 1, 2;
    is(scalar(() = slurp_file($node->logfile, $start) =~ /$message/g), 1, "shortage $shortage is logged once");
    isnt($client->query_safe('SELECT count(*) FROM inbox'), 0, "shortage $shortage: nothing is purged");
    give_slot_back($session);
    ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM inbox)'), "shortage $shortage is over: purged");
    set_purge('off');
}
is($client->query_safe(q{SELECT pid FROM pg_stat_activity WHERE backend_type = 'idem launcher'}),
    $launcher, 'launcher is the same all the time');
$client->quit;

$node->stop;
done_testing();
