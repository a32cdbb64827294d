# A standby has no launcher, as nobody can purge there; it starts by itself when the standby is promoted. On a primary that
# waits for a synchronous standby, the worker does not wait, since it would hold its locks for as long as that takes.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $primary = start_node(
    q{
    shared_preload_libraries = 'idem'
    idem.purge_naptime = 1
    fsync = off
}, name => 'primary', allows_streaming => 1);
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

$primary->safe_psql('postgres',
    q{CREATE EXTENSION idem;
      SELECT idem_create_table('inbox', hot_window => '1 ms', cold_window => '400 ms', generations => 3);
      SELECT FROM idem_accept('inbox', 'book', 'forgotten')});
ok($primary->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM inbox)'), 'primary is purged');
$primary->wait_for_catchup($standby);
is($standby->safe_psql('postgres', 'SELECT count(*) FROM inbox'), 0, 'so is its standby');

my $launchers = q{SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'idem %'};
is($standby->safe_psql('postgres', $launchers), 0, 'standby has no launcher');
is($standby->safe_psql('postgres', 'SELECT count(*) FROM idem_worker_passes()'), 0, 'standby makes no passes');

$primary->append_conf('postgresql.conf', "idem.purge = off");
$primary->reload;
ok( $primary->poll_query_until('postgres',
        q{SELECT count(*) = 1 AND bool_and(state = 'idle') FROM pg_stat_activity WHERE backend_type LIKE 'idem %'}),
    'purging is off');
$primary->safe_psql('postgres', q{SELECT FROM idem_accept('inbox', 'book', 'forgotten too')});
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
$standby->promote;
ok($standby->poll_query_until('postgres', $launchers, 1), 'promoted standby has a launcher');
ok($standby->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM inbox)'), 'promoted standby is purged');

$standby->append_conf('postgresql.conf', q{synchronous_standby_names = 'none_such'});
$standby->reload;
$standby->safe_psql('postgres',
    q{SET synchronous_commit = local; SELECT FROM idem_accept('inbox', 'book', 'forgotten as well')});
ok($standby->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM inbox)'),
    'worker does not wait for a synchronous standby');

$standby->stop;
done_testing();
