# However many dedup tables and databases there are, one launcher and one worker at a time see to all of them.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $databases = 50;
my $tables = 500;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    max_worker_processes = 3
    max_locks_per_transaction = 1000
    idem.purge = off
    idem.purge_naptime = 1
    autovacuum = off
    log_statement = none
    fsync = off
});

my $windows = q{hot_window => '1 ms', cold_window => '1 second', generations => 2};
$node->safe_psql('postgres', 'CREATE DATABASE shop IS_TEMPLATE true');
$node->safe_psql(
    'shop', qq{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', $windows);
    SELECT FROM idem_accept('inbox', 'book', 'forgotten');
});
$node->safe_psql('postgres', join ' ', map { "CREATE DATABASE shop_$_ TEMPLATE shop STRATEGY file_copy;" } 1 .. $databases);
$node->safe_psql('postgres', "CREATE EXTENSION idem");
$node->safe_psql(
    'postgres', qq{
    SELECT count(idem_create_table('inbox_' || n, $windows)) FROM generate_series(1, $tables) n;
    SELECT count(*) FROM generate_series(1, $tables) n, idem_accept(('inbox_' || n)::regclass, 'book', 'forgotten');
});

my $start = -s $node->logfile;
$node->append_conf('postgresql.conf', 'idem.purge = on');
$node->reload;
ok( $node->poll_query_until(
        'postgres', q{SELECT count(*) = 0 FROM pg_class
                      WHERE relname ~ '^inbox_\d+_g\d$' AND relkind = 'r' AND pg_relation_size(oid) > 0}),
    "$tables tables are purged");
is($node->safe_psql('postgres', 'SELECT tables, failed_tables FROM idem_worker_passes()'),
    "$tables|0", 'one pass saw all of them');
my @left = grep { !$node->poll_query_until("shop_$_", 'SELECT NOT EXISTS (SELECT FROM inbox)') } 1 .. $databases;
is("@left", '', "$databases databases are purged");
unlike(slurp_file($node->logfile, $start), qr/ERROR|WARNING|FATAL|exited with exit code/, 'without a word in the log');

$node->stop;
done_testing();
