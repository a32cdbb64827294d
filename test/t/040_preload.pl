# idem works where the library is loaded by the first call, and where shared_preload_libraries loads it with the server,
# with the same settings; databases without the extension are not touched by it.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("idem.max_result_size = 1kB\nmax_prepared_transactions = 10\nrestart_after_crash = on");
$node->safe_psql(
    'postgres', q{
    CREATE DATABASE without_extension;
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox');
});

# Claims in sessions which load the library by their first call, in whatever way.
sub works
{
    my ($how) = @_;
    is( $node->safe_psql(
            'postgres', qq{
            SELECT outcome FROM idem_accept('inbox', 'book', '$how', result => '1');
            SELECT outcome, result FROM idem_accept('inbox', 'book', '$how');
            CALL idem_rotate('inbox');
            SELECT outcome, result FROM idem_accept('inbox', 'book', '$how');
            BEGIN;
            SELECT outcome FROM idem_acquire('inbox', 'book', '$how, prepared');
            SELECT idem_commit('inbox', 'book', '$how, prepared') IS NOT NULL;
            PREPARE TRANSACTION 'prepared';
            SELECT outcome FROM idem_acquire('inbox', 'book', '$how, prepared');
            COMMIT PREPARED 'prepared';
            SELECT outcome FROM idem_accept('inbox', 'book', '$how, prepared');
        }),
        "acquired\nduplicate|1\nduplicate|1\nacquired\nt\nbusy\nduplicate",
        "$how: claims");

    my @asked = (
        [ "SELECT idem_acquire('inbox', 'book', '$how, unsettled')" => 'ID003', 'unsettled claim' ],
        [   "SELECT idem_accept('inbox', 'book', '$how, too large', result => to_jsonb(repeat('x', 2000)))" => '22023',
            'setting of postgresql.conf' ]);
    foreach my $asked (@asked)
    {
        my ($statement, $sqlstate, $what) = @$asked;
        my (undef, undef, $stderr) =
          $node->psql('postgres', $statement, extra_params => [ '--set', 'VERBOSITY=sqlstate' ]);
        like($stderr, qr/ERROR:  $sqlstate/, "$how: $what");
    }
    is($node->safe_psql('without_extension', 'CREATE TABLE anything (); DROP TABLE anything; SELECT 1'),
        1, "$how: database without the extension");
    return;
}

works('not preloaded');
is($node->safe_psql('postgres', 'SELECT * FROM idem_worker_passes()'), '', 'not preloaded: nothing is purged');
is($node->safe_psql('postgres', 'SELECT * FROM idem_worker_progress()'), '', 'not preloaded: nothing is in progress');

$node->append_conf('postgresql.conf', q{session_preload_libraries = 'idem'});
$node->reload;
works('preloaded by each session');

$node->append_conf('postgresql.conf', q{session_preload_libraries = ''});
$node->append_conf('postgresql.conf', q{shared_preload_libraries = 'idem'});
$node->restart;
works('preloaded by the server');
ok($node->poll_query_until('postgres', 'SELECT finished_at >= started_at FROM idem_worker_passes()'),
    'preloaded by the server: a pass is made');
is($node->safe_psql('postgres', q{SELECT outcome FROM idem_accept('inbox', 'book', 'not preloaded')}),
    'duplicate', 'preloaded by the server: event from before');
is($node->safe_psql('without_extension', 'SHOW idem.max_result_size'),
    '1kB', 'preloaded by the server: setting is known everywhere');

# After a crash of one session the server starts the others, and the library in them, anew.
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
kill 'KILL', $pid;
$session->quit;
$node->wait_for_log(qr/all server processes terminated; reinitializing/);
$node->poll_query_until('postgres', 'SELECT 1', '1') or die 'server did not recover';
works('server recovered by itself');

$node->stop;
done_testing();
