# Passes with nothing to do run no query, write nothing and log nothing, however often they come.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
plan skip_all => 'needs pg_stat_statements'
  unless -e $node->config_data('--sharedir') . '/extension/pg_stat_statements.control';
$node->append_conf(
    'postgresql.conf', q{
    shared_preload_libraries = 'pg_stat_statements, idem'
    pg_stat_statements.track = all
    idem.purge_naptime = 1
    autovacuum = off
    log_statement = none
    fsync = off
});
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE without');
my $client = $node->background_psql('postgres');
$client->query_safe($_)
  foreach 'CREATE EXTENSION idem', 'CREATE EXTENSION pg_stat_statements',
  q{SELECT idem_create_table('inbox')}, q{SELECT idem_create_table('outbox', mode => 'lease')},
  q{SELECT idem_accept('inbox', 'book', 'remembered')}, q{SELECT idem_acquire('outbox', 'send', 'claimed')},
  q{SET pg_stat_statements.track = none};

my $passes = 'SELECT started_at FROM idem_worker_passes()';

# Until a pass has begun and ended.
sub await_pass
{
    my $last = $client->query_safe('SELECT clock_timestamp()');
    $client->query_safe(
        qq{DO \$\$ BEGIN
            WHILE NOT EXISTS (SELECT FROM idem_worker_passes() WHERE started_at > '$last' AND finished_at > started_at) LOOP
                PERFORM pg_sleep(0.01);
            END LOOP;
        END \$\$});
    return;
}

await_pass();
$client->query_safe('CHECKPOINT');
$client->query_safe('SELECT pg_stat_statements_reset()');
my $lsn = $client->query_safe('SELECT pg_current_wal_insert_lsn()');
my $start = -s $node->logfile;
await_pass() foreach 1, 2;
is($client->query_safe('SELECT pg_current_wal_insert_lsn()'), $lsn, 'no WAL');
is($client->query_safe('SELECT query FROM pg_stat_statements'), '', 'no queries');
is(slurp_file($node->logfile, $start), '', 'no word in the log');
is($client->query_safe('SELECT tables, failed_tables FROM idem_worker_passes()'), '2|0', 'though both tables were looked at');
$client->quit;

$node->stop;
done_testing();
