# A dedup table, or the extension, may be dropped at any moment of a pass: the worker never keeps it from going, and says
# nothing about what is gone. Databases without the extension are passed over in silence.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge_naptime = 1
    idem.purge_lock_timeout = 1h
    autovacuum = off
    fsync = off
});

my $windows = q{hot_window => '1 ms', cold_window => '400 ms', generations => 3};
my $client = $node->background_psql('postgres');
my $holder = $node->background_psql('postgres');

sub create_tables
{
    my @tables = @_;
    $client->query_safe('SET client_min_messages = warning');
    $client->query_safe('CREATE EXTENSION IF NOT EXISTS idem');
    $holder->query_safe('BEGIN');
    foreach my $table (@tables)
    {
        $client->query_safe('BEGIN');
        $client->query_safe("SELECT idem_create_table('$table', $windows)");
        $client->query_safe("SELECT FROM idem_accept('$table', 'book', 'forgotten')");
        $client->query_safe('COMMIT');
    }
    return;
}

# Lets a pass come as far as the ring of a table, whose row is locked meanwhile, and drops something then.
sub drop_while_worker_is_at
{
    my ($table, @statements) = @_;
    my $start = -s $node->logfile;
    $holder->query_safe("SELECT FROM idem_control WHERE dedup = '$table'::regclass FOR UPDATE");
    $node->poll_query_until('postgres',
        q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'idem purge worker' AND wait_event_type = 'Lock')}
    ) or die 'worker did not come';
    $client->{stdin} .= "$_;\n" foreach @statements;
    $client->{run}->pump_nb;
    return $start;
}

# Lets the pass go on, and another one begin.
sub is_over
{
    my ($start, $promise) = @_;
    $holder->query_safe('COMMIT') if $holder->query_safe('SELECT pg_current_xact_id_if_assigned()') ne '';
    $client->query_safe('SELECT 1');
    my $reloaded = -s $node->logfile;
    $node->reload;
    $node->wait_for_log(qr/received SIGHUP/, $reloaded);
    ok( $node->poll_query_until('postgres',
            q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'idem purge worker'}),
        "$promise: no worker hangs");
    unlike(slurp_file($node->logfile, $start), qr/ERROR|WARNING|FATAL|exited with exit code/, "$promise: silence");
    return;
}

# The table at which the worker is.
create_tables('inbox');
my $start = drop_while_worker_is_at('inbox', 'DROP TABLE inbox');
is_over($start, 'DROP TABLE of the table that is being purged');

# Tables which the worker has not come to, or has left.
create_tables('first', 'second', 'third');
$start = drop_while_worker_is_at('second', 'DROP TABLE first', 'DROP TABLE third');
is_over($start, 'DROP TABLE of other tables');
is($client->query_safe(q{SELECT count(*) FROM pg_class WHERE relname IN ('first', 'third')}), 0, 'they are gone');

create_tables('inbox');
$start = drop_while_worker_is_at('inbox', 'DROP EXTENSION idem CASCADE');
is_over($start, 'DROP EXTENSION');
is($client->query_safe(q{SELECT count(*) FROM pg_class WHERE relname ~ '^(idem|inbox|second)'}), 0, 'it is gone');

# No extension, or something that looks like it.
$start = -s $node->logfile;
$client->query_safe($_) foreach 'CREATE SCHEMA idem', 'CREATE TABLE idem_registry (dedup regclass)';
$node->safe_psql('postgres', 'CREATE DATABASE empty');
$node->reload;
is_over($start, 'no extension');

# The extension made anew.
$client->query_safe($_) foreach 'DROP TABLE idem_registry', 'DROP SCHEMA idem';
create_tables('inbox');
$holder->query_safe('COMMIT');
ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM inbox)'), 'extension made anew: purged');
$_->quit foreach $client, $holder;

$node->stop;
done_testing();
