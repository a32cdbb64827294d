# Filters get their shared memory when the server starts with the library, as much as idem.filter_memory says; without
# any, idem works as it does without preloading.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{shared_preload_libraries = 'idem'});
$node->safe_psql('postgres', q{CREATE EXTENSION idem; SELECT idem_create_table('inbox')});

# What is reserved in all, in kB; nothing is null.
sub reserved
{
    return $node->safe_psql('postgres',
        q{SELECT sum(size) / 1024 FROM pg_shmem_allocations WHERE name = 'idem filters'});
}

sub works
{
    my ($how) = @_;
    is( $node->safe_psql(
            'postgres', qq{
            SELECT outcome FROM idem_accept('inbox', 'book', '$how');
            CALL idem_rotate('inbox');
            SELECT outcome FROM idem_accept('inbox', 'book', '$how');
        }),
        "acquired\nduplicate",
        "$how: claims");
    return;
}

sub stderr_of
{
    my ($statement) = @_;
    my (undef, undef, $stderr) = $node->psql('postgres', $statement);
    return $stderr;
}

is($node->safe_psql('postgres', 'SHOW idem.filter_memory'), '64MB', 'default: setting');
is( $node->safe_psql(
        'postgres', q{SELECT context, unit, min_val FROM pg_settings WHERE name = 'idem.filter_memory'}),
    'postmaster|kB|0',
    'setting is made at the server\'s start, in kB');
my $default = reserved();
works('default');
foreach my $role ('SET', 'ALTER ROLE postgres SET', 'ALTER DATABASE postgres SET')
{
    like(
        stderr_of("$role idem.filter_memory = '1MB'"),
        qr/ERROR:  parameter "idem.filter_memory" cannot be changed without restarting the server/,
        "$role is refused");
}

restart_with($node, 'idem.filter_memory = 1MB');
is($node->safe_psql('postgres', 'SHOW idem.filter_memory'), '1MB', '1MB: setting');
cmp_ok($default - reserved(), '==', 63 * 1024, '1MB: so much less is reserved');
cmp_ok(reserved(), '<', 3 * 1024, '1MB: what is needed besides is small');
works('1MB');

restart_with($node, 'idem.filter_memory = 0');
is($node->safe_psql('postgres', 'SHOW idem.filter_memory'), '0', '0: setting');
is(reserved(), '', '0: nothing is reserved');
works('0');

# Where the library is loaded by the first call, the setting has no effect, and is no mistake.
restart_with($node, 'idem.filter_memory = 1MB', q{shared_preload_libraries = ''});
is(reserved(), '', 'not preloaded: nothing is reserved');
works('not preloaded');
is(stderr_of(q{SELECT idem_lookup('inbox', 'book', '1MB')}), '', 'not preloaded: no warning');
like(
    stderr_of(q{SELECT idem_lookup('inbox', 'book', '1MB'); SET idem.filter_memory = '2MB'}),
    qr/ERROR:  parameter "idem.filter_memory" cannot be changed now/,
    'not preloaded: SET is refused');

# After a crash of one session the server lays out its shared memory anew.
restart_with($node, q{shared_preload_libraries = 'idem'}, 'restart_after_crash = on');
my $before = reserved();
my $session = $node->background_psql('postgres');
my $pid = $session->query_safe('SELECT pg_backend_pid()');
kill 'KILL', $pid;
$session->quit;
$node->wait_for_log(qr/all server processes terminated; reinitializing/);
$node->poll_query_until('postgres', 'SELECT 1', '1') or die 'server did not recover';
cmp_ok(reserved(), '==', $before, 'server recovered by itself: memory is reserved');
works('server recovered by itself');

$node->stop;
done_testing();
