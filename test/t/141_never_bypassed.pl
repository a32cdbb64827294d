# What is no lack of a store is raised to a handler whose policy is `allow`, too: whoever cancels a call, ends its session
# or must start its transaction over means it. The rest of this is in test/sql/not_available.sql.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
shared_preload_libraries = 'idem'
idem.purge = off
deadlock_timeout = 1h});
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    CREATE TABLE beside ();
    SELECT idem_create_table('inbox', generations => 2, mode => 'lease');
    SELECT idem_set_policy('inbox', 'lenient', on_unavailable => 'allow');
    SELECT idem_receive('inbox', 'lenient', 'received');
});

my $locker = $node->background_psql('postgres');
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe('\set VERBOSITY sqlstate');
my $pid = $session->query_safe('SELECT pg_backend_pid()');

# What the session's statement raises.
sub raised
{
    my ($statement) = @_;
    $session->query($statement);
    my ($sqlstate) = $session->{stderr} =~ /(?:ERROR|FATAL):  (\w+)/;
    $session->{stderr} = '';
    return $sqlstate;
}

# Starts a statement in a session, and returns once it waits for a lock.
sub start_waiting
{
    my ($in, $statement) = @_;
    my $waiting = q{SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'};
    my $before = $node->safe_psql('postgres', $waiting);
    $in->query_until(qr/started/, "\\echo started\n$statement;\n");
    $node->poll_query_until('postgres', "SELECT ($waiting) = $before + 1") or die "does not wait: $statement";
    return;
}

my $acquire = q{SELECT idem_acquire('inbox', 'lenient', '%s')};

$locker->query_safe($_) foreach 'BEGIN', 'LOCK TABLE inbox_g0';
$session->query_safe(q{SET statement_timeout = '10ms'});
is(raised(sprintf($acquire, 'e')), '57014', 'statement_timeout');
is(raised(q{SELECT idem_acquire_many('inbox', 'lenient', '{e,f}')}), '57014', 'statement_timeout, many events');
$session->query_safe('SET statement_timeout = 0');

start_waiting($session, sprintf($acquire, 'e'));
is($node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)"), 't', 'cancelled');
$session->query(q{\echo});
like($session->{stderr}, qr/ERROR:  57014/, 'a call that is cancelled');
$session->{stderr} = '';

# The one that is answered 40P01 is who looks for deadlocks last.
$session->query_safe($_) foreach q{SET deadlock_timeout = '10ms'}, 'BEGIN', 'LOCK TABLE beside';
start_waiting($locker, 'LOCK TABLE beside');
is(raised(sprintf($acquire, 'e')), '40P01', 'a deadlock');
$session->query_safe('ROLLBACK');
$locker->query_safe('ROLLBACK');

$session->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
$node->safe_psql('postgres', q{SELECT idem_accept('inbox', 'lenient', 'newer')});
is(raised(sprintf($acquire, 'newer')), '40001', 'a serialization failure');
$session->query_safe('ROLLBACK');

# Where nothing would be done unprotected, a lock that can't be had is an error as ever.
$locker->query_safe($_) foreach 'BEGIN', 'LOCK TABLE inbox_g0 IN SHARE MODE';
$session->query_safe(q{SET lock_timeout = '10ms'});
is(raised($_), '55P03', $_)
  foreach q{SELECT idem_due('inbox', 'lenient')}, q{SELECT idem_receive('inbox', 'lenient', 'another')},
  q{SELECT idem_commit('inbox', 'lenient', 'newer', attempt => 1, result => '1')};
$session->query_safe('SET lock_timeout = 0');

is($node->safe_psql('postgres', q{SELECT idem_bypassed('inbox')}), 0, 'nothing of all this was bypassed');

start_waiting($session, sprintf($acquire, 'e'));
is($node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 180000)"), 't', 'a session that is ended ends');
$session->{run}->finish;
$locker->query_safe('ROLLBACK');
is($node->safe_psql('postgres', q{SELECT idem_bypassed('inbox')}), 0, 'and bypasses nothing');
is($node->safe_psql('postgres', q{SELECT event_id FROM idem_due('inbox', 'lenient')}), 'received',
    'what was received is due still');
$locker->quit;

$node->stop;
done_testing();
