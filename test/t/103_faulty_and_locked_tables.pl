# What is wrong with one dedup table, or who holds it, is that table's matter: the worker says which one it is, goes on
# with the others, and purges it once it can.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.purge_naptime = 1
    idem.purge_lock_timeout = 100ms
    autovacuum = off
    fsync = off
});

# In the order in which they were made, those that are in order last.
my @broken = ('secured', 'extended', 'reduced');
my @held = ('locked', 'locked_part', 'written');
my @sound = ('inbox', 'outbox');
my $client = $node->background_psql('postgres');
$client->query_safe('CREATE EXTENSION idem');
foreach my $table (@broken, @held, @sound)
{
    $client->query_safe(
        "SELECT idem_create_table('$table', hot_window => '1 ms', cold_window => '400 ms', generations => 3)");
    $client->query_safe("SELECT outcome FROM idem_accept('$table', 'book', 'forgotten')");
}
$client->query_safe($_)
  foreach 'ALTER TABLE secured_g0 ENABLE ROW LEVEL SECURITY',
  'CREATE TABLE extended_g7 PARTITION OF extended (PRIMARY KEY (key)) FOR VALUES IN (7)',
  'DROP TABLE reduced_g1';

my @sessions = map { $node->background_psql('postgres') } 1 .. 3;
$sessions[0]->query_safe('BEGIN; LOCK TABLE locked IN ACCESS EXCLUSIVE MODE');
$sessions[1]->query_safe('BEGIN; LOCK TABLE locked_part_g0 IN ACCESS EXCLUSIVE MODE');

# An open transaction keeps its generation: its claim is not there for anybody yet, and must not be forgotten.
$sessions[2]->query_safe(q{BEGIN; SELECT outcome FROM idem_accept('written', 'book', 'open')});

$node->append_conf('postgresql.conf', 'idem.purge = on');
my $start = -s $node->logfile;
$node->reload;

sub is_purged
{
    my ($table, $promise) = @_;
    ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM $table)"), $promise);
    return;
}

is_purged($_, "$_ is purged although tables before it are broken or held") foreach @sound;
foreach my $table (@broken)
{
    ok($node->wait_for_log(qr/WARNING:.*dedup table "$table"/, $start), "$table: log names the table");
    isnt($client->query_safe("SELECT count(*) FROM ${table}_g0"), 0, "$table: nothing is touched");
}
isnt($client->query_safe('SELECT count(*) FROM written_g0'), 0, 'generation with an open claim is kept');
ok( $node->poll_query_until('postgres', 'SELECT failed_tables >= 3 AND tables = 8 FROM idem_worker_passes()'),
    'tables that failed are counted');
unlike(slurp_file($node->logfile, $start), qr/exited with exit code/, 'no worker died of it');

# What was held.
$_->query_safe('COMMIT') foreach @sessions;
is_purged($_, "$_ is purged once nobody holds it") foreach @held;

# What was broken.
$client->query_safe('ALTER TABLE secured_g0 DISABLE ROW LEVEL SECURITY');
is_purged('secured', 'secured is purged once it is in order');

# A transaction that only reads something else holds nothing up, and one that reads the table keeps no ring from turning.
$sessions[0]->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
$sessions[1]->query_safe('BEGIN; SELECT count(*) FROM outbox');
my $current = q{current_generation FROM idem_control WHERE dedup = 'outbox'::regclass};
my $before = $client->query_safe("SELECT $current");
$client->query_safe("SELECT outcome FROM idem_accept('$_', 'book', 'forgotten too')") foreach @sound;
is_purged('inbox', 'a long transaction elsewhere holds nothing up');
ok($node->poll_query_until('postgres', "SELECT $before < $current"), 'ring turns while somebody reads the table');
$_->query_safe('COMMIT') foreach @sessions[ 0, 1 ];
is_purged('outbox', 'table is purged when the reader has gone');

# Somebody at the gate, which a step takes in the middle of its work.
# No statement can name it, so a table is given its number.
$client->query_safe($_)
  foreach 'CREATE TABLE the_gate ()', q{UPDATE pg_class SET oid = idem_gate_relation() WHERE oid = 'the_gate'::regclass};
$sessions[0]->query_safe('BEGIN; LOCK TABLE the_gate IN ROW SHARE MODE');
$client->query_safe("SELECT outcome FROM idem_accept('$_', 'book', 'forgotten at last')") foreach @sound;
$node->poll_query_until('postgres', 'SELECT max(expires_at) < clock_timestamp() FROM inbox') or die 'event does not expire';
$start = -s $node->logfile;
my $now = $client->query_safe('SELECT clock_timestamp()');
ok( $node->poll_query_until('postgres',
        "SELECT started_at > '$now' AND finished_at > started_at AND tables = 8 FROM idem_worker_passes()"),
    'gate held: passes come through');
is($node->psql('postgres', 'CALL idem_purge()'), 0, 'gate held: so do those that are called');
unlike(slurp_file($node->logfile, $start), qr/ERROR|FATAL|exited with exit code/, 'gate held: nobody dies of it');
isnt($client->query_safe('SELECT count(*) FROM inbox'), 0, 'gate held: nothing is purged');
$sessions[0]->query_safe('COMMIT');
is_purged($_, "$_ is purged once nobody holds the gate") foreach @sound;
$_->quit foreach $client, @sessions;

$node->stop;
done_testing();
