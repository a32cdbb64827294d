# Launcher and worker can be cancelled and terminated, and a crash of some session restarts them: purging goes on. Settings
# can be changed while they run.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use Time::HiRes qw(usleep);

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge_naptime = 1
    idem.purge_lock_timeout = 1h
    restart_after_crash = on
    autovacuum = off
    fsync = off
});
$node->safe_psql('postgres', 'CREATE DATABASE shop');
my $create = q{SELECT idem_create_table('%s', hot_window => '1 ms', cold_window => '400 ms', generations => 3);};
$node->safe_psql('postgres', 'CREATE EXTENSION idem;' . sprintf($create, 'inbox') . sprintf($create, 'outbox'));
$node->safe_psql('shop', 'CREATE EXTENSION idem;' . sprintf($create, 'inbox'));

sub accept_events
{
    $node->safe_psql('postgres', "SELECT FROM idem_accept('$_', 'book', 'forgotten')") foreach 'inbox', 'outbox';
    return;
}

sub is_purged
{
    my ($table, $promise) = @_;
    ok($node->poll_query_until('postgres', "SELECT NOT EXISTS (SELECT FROM $table)"), $promise);
    return;
}

# True once a pass has begun and come through.
sub goes_on
{
    my ($promise) = @_;
    my $now = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
    ok( $node->poll_query_until('postgres',
            "SELECT started_at > '$now' AND finished_at > started_at FROM idem_worker_passes()"),
        "$promise: purging goes on");
    return;
}

sub pid_of
{
    my ($type) = @_;
    return $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE backend_type = '$type'");
}

sub signal_launcher
{
    my ($function, $promise) = @_;
    my $pid = pid_of('idem launcher');
    is($node->safe_psql('postgres', "SELECT $function($pid)"), 't', "$promise: signal is sent");
    goes_on($promise);
    return $pid;
}

my $pid = signal_launcher('pg_cancel_backend', 'launcher cancelled');
is(pid_of('idem launcher'), $pid, 'launcher cancelled: it is the same');
$pid = signal_launcher('pg_terminate_backend', 'launcher terminated');
isnt(pid_of('idem launcher'), $pid, 'launcher terminated: another one has come');

# A worker that is held up by a lock on a row which it has to change.
my $holder = $node->background_psql('postgres');

sub hold_worker
{
    $holder->query_safe(q{BEGIN; SELECT FROM idem_control WHERE dedup = 'inbox'::regclass FOR UPDATE});
    accept_events();
    $node->poll_query_until('postgres',
        q{SELECT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'idem purge worker' AND wait_event_type = 'Lock')}
    ) or die 'worker did not come';
    return;
}

hold_worker();
is( $node->safe_psql('postgres',
        q{SELECT datname, application_name, state, query LIKE 'idem: %' FROM pg_stat_activity WHERE backend_type = 'idem purge worker'}),
    'postgres|idem purge worker|active|t',
    'worker reports what it is at');
is($node->safe_psql('postgres', 'SELECT started_at > finished_at OR finished_at IS NULL FROM idem_worker_passes()'),
    't', 'a pass that runs is shown');
my $start = -s $node->logfile;
$node->safe_psql('postgres', q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'idem purge worker'});
ok($node->poll_query_until('postgres', 'SELECT tables = 2 AND failed_tables = 1 FROM idem_worker_passes()'),
    'worker cancelled: it leaves out the table and finishes the pass');
like(slurp_file($node->logfile, $start), qr/WARNING:  canceling statement(.*\n)+.*dedup table "inbox"/,
    'worker cancelled: log names the table');
$holder->query_safe('ROLLBACK');
goes_on('worker cancelled');

hold_worker();
$pid = pid_of('idem launcher');
$node->safe_psql('postgres', q{SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'idem purge worker'});
$holder->query_safe('ROLLBACK');
goes_on('worker terminated');
is(pid_of('idem launcher'), $pid, 'worker terminated: launcher does not mind');
is($node->safe_psql('postgres', 'SELECT count(*) FROM idem_worker_progress()'), 0, 'worker terminated: it leaves nothing behind');

# purge = off ends a pass that runs.
sub set
{
    my ($setting) = @_;
    $node->append_conf('postgresql.conf', $setting);
    $node->reload;
    return;
}

hold_worker();
set('idem.purge = off');
ok( $node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'idem purge worker'}),
    'purge = off: a running worker ends');
$holder->query_safe('ROLLBACK');
$node->poll_query_until('postgres', q{SELECT state = 'idle' FROM pg_stat_activity WHERE backend_type = 'idem launcher'});
my $passes = 'SELECT started_at FROM idem_worker_passes()';
my $last = $node->safe_psql('postgres', $passes);

# Several reloads wake the launcher; none of them starts a pass.
foreach (1 .. 3)
{
    $start = -s $node->logfile;
    $node->reload;
    $node->wait_for_log(qr/received SIGHUP/, $start);
}
is($node->safe_psql('postgres', $passes), $last, 'purge = off: no pass begins');
isnt($node->safe_psql('postgres', 'SELECT count(*) FROM inbox'), 0, 'purge = off: nothing is purged');

# A new naptime counts at once, so does a list of databases.
$node->safe_psql('shop', "SELECT FROM idem_accept('inbox', 'book', 'forgotten')");
set("idem.purge = on\nidem.databases = 'Shop, shop, \"no such database\"'");
ok($node->poll_query_until('shop', 'SELECT NOT EXISTS (SELECT FROM inbox)'), 'databases: one that is listed is purged');
is($node->safe_psql('postgres', $passes), $last, 'databases: one that is not is left alone');
set("idem.databases = ''");
is_purged('inbox', 'databases: all again');

set('idem.databases = \'a b\'');
ok($node->wait_for_log(qr/invalid value for parameter "idem.databases": "a b"/), 'databases: an invalid list is refused');
set("idem.databases = ''\nidem.purge_naptime = 1d");
ok($node->poll_query_until('postgres', "SELECT started_at > '$last' AND finished_at >= started_at FROM idem_worker_passes()"),
    'naptime: a reload begins a pass');
set('idem.purge_naptime = 1');
goes_on('naptime shortened');

# A crash.
my $victim = $node->background_psql('postgres');
my $victim_pid = $victim->query_safe('SELECT pg_backend_pid()');
$start = -s $node->logfile;
kill 'KILL', $victim_pid;
$victim->quit;
$node->wait_for_log(qr/all server processes terminated; reinitializing/, $start);
$node->poll_query_until('postgres', 'SELECT 1', '1') or die 'server did not recover';
goes_on('crash of a session');
$holder->quit;

$node->stop;

# The death of the postmaster: a server can be started only when nobody is left of the old one.
$node->start;
goes_on('server restarted');
$node->kill9;
my $started = 0;
for (my $i = 0; !$started && $i < 10 * $PostgreSQL::Test::Utils::timeout_default; $i++)
{
    $started = $node->start(fail_ok => 1);
    next if $started;
    $node->stop('fast', fail_ok => 1);
    usleep(100_000);
}
ok($started, 'postmaster killed: launcher does not outlive it');
goes_on('postmaster killed');
$node->stop;

# pg_upgrade starts the server in this mode.
my @pg_ctl = ('pg_ctl', '-w', '-D', $node->data_dir);
command_ok([ @pg_ctl, '-l', $node->logfile, '-o', '-b', 'start' ], 'server starts in binary upgrade mode');
is(pid_of('idem launcher'), '', 'binary upgrade mode: there is no launcher');
command_ok([ @pg_ctl, 'stop' ], 'server stops');
done_testing();
