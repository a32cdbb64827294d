# A clock that is wrong for a while destroys nothing and stops nothing. Ahead: no pass forgets what is not old, until the
# clock has held steady for idem.clock_patience; over a restart too. Back: passes and turns go on, and a lease that was
# taken in the future may be requeued.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use ClockTest;

plan skip_all => 'no C compiler to build the clock of the test with' if !build_clock();

my $day = 86400;
my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.purge_naptime = 1s
    autovacuum = off
});
start_with_clock($node);

sub sql
{
    return $node->safe_psql('postgres', join(";\n", @_));
}

sub restart
{
    my (@settings) = @_;
    $node->append_conf('postgresql.conf', $_) foreach @settings;
    $node->stop;
    start_with_clock($node);
    return;
}

sub set
{
    $node->append_conf('postgresql.conf', $_[0]);
    $node->reload;
    return;
}

sub events
{
    my ($table) = @_;
    return sql("SELECT count(*) FROM $table");
}

# A pass of the worker's, from its begin to its end.
sub worker_pass
{
    my $begun = sql('SELECT started_at FROM idem_worker_passes()');
    set('idem.purge = on');
    # When the next but one begins, the next is through.
    foreach (1 .. 2)
    {
        $node->poll_query_until('postgres',
            "SELECT started_at::text <> '$begun' FROM idem_worker_passes()")
          or die 'no pass';
        $begun = sql('SELECT started_at FROM idem_worker_passes()');
    }
    set('idem.purge = off');
    $node->poll_query_until('postgres',
        q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'idem purge worker'})
      or die 'worker did not end';
    return;
}

sub doubted
{
    return sql('SELECT DISTINCT clock_doubted_since IS NOT NULL FROM idem_purge_status');
}

sub warnings
{
    my ($offset) = @_;
    my @found = substr(slurp_file($node->logfile), $offset) =~ /WARNING:  clock has jumped/g;
    return scalar @found;
}

sql('CREATE EXTENSION idem', q{SELECT idem_create_table('inbox')}, q{SELECT idem_create_table('short', '1 s', '1 day')});
sql("SELECT FROM generate_series(1, 1000) i, idem_accept('$_', 'book', 'e' || i)", "CALL idem_rotate('$_')")
  foreach 'inbox', 'short';
worker_pass();
is(doubted(), 'f', 'a clock that runs as it should is believed');

note('forty days ahead for a few passes');
my $log = -s $node->logfile;
set_clock(40 * $day);
like(sql('SELECT clock_timestamp()'), qr/^\d/, 'the clock is ahead');
cmp_ok(sql('SELECT extract(epoch FROM clock_timestamp())::bigint'), '>', time + 39 * $day, 'for sessions');
worker_pass();
is(events('inbox'), 1000, 'nothing is forgotten');
is(doubted(), 't', 'which is shown');
worker_pass();
is(events('inbox'), 1000, 'nor by the next pass');
is(warnings($log), 1, 'it is warned once');
set_clock(0);
worker_pass();
is(events('inbox'), 1000, 'nor when it is back');
is(doubted(), 't', 'it is doubted still');
is(sql(q{SELECT outcome FROM idem_accept('inbox', 'book', 'e7')}), 'duplicate', 'all is remembered');
is(warnings($log), 2, 'and warned of the way back');
is(sql(q{SELECT last_error FROM idem_purge_status WHERE last_error IS NOT NULL}), '', 'no pass failed');

note('once it has held steady, purging goes on');
set('idem.clock_patience = 1s');
worker_pass();
worker_pass();
is(doubted(), 'f', 'it is believed again');
is(events('inbox'), 1000, 'what is not old stays');
set('idem.clock_patience = 1h');

note('a jump that is no mistake');
set_clock(2 * $day);
worker_pass();
is(events('short'), 1000, 'what has expired waits');
$node->safe_psql('postgres', 'CALL idem_purge()');
is(events('short'), 0, 'a call by hand is a word');
is(events('inbox'), 1000, 'and forgets only what is old by the clock as it is');

note('a jump while the server is off');
sql(q{SELECT FROM generate_series(1, 1000) i, idem_accept('short', 'book', 'f' || i)}, q{CALL idem_rotate('short')});
$node->stop;
set_clock(4 * $day);
start_with_clock($node);
worker_pass();
is(events('short'), 1000, 'nothing is forgotten at once');
is(doubted(), 't', 'which is shown');
set('idem.clock_patience = 1s');
worker_pass();
worker_pass();
is(events('short'), 0, 'it goes on when it has held steady');
set('idem.clock_patience = 1h');

note('without preloading a call is what a scheduler does');
restart(q{shared_preload_libraries = ''});
sql(q{SELECT FROM generate_series(1, 1000) i, idem_accept('short', 'book', 'g' || i)}, q{CALL idem_rotate('short')},
    q{CALL idem_purge()});
set_clock(6 * $day);
my (undef, undef, $stderr) = $node->psql('postgres', 'CALL idem_purge()');
like($stderr, qr/WARNING:  clock has jumped/, 'it is warned');
is(events('short'), 1000, 'nothing is forgotten');
sql(q{CALL idem_purge('short')});
is(events('short'), 1000, 'nor by a call for one table');
sql('SET idem.clock_patience = 0', q{CALL idem_purge('short')});
is(events('short'), 0, 'whoever says so is believed');
restart(q{shared_preload_libraries = 'idem'});

note('back');
sql(q{SELECT idem_create_table('jobs', '15 min', '30 days', 'lease')});
set_clock(406 * $day);
is(sql(q{SELECT outcome FROM idem_acquire('jobs', 'bot', 'ahead')}), 'acquired', 'a lease is taken in the future');
sql(q{CALL idem_rotate('jobs')}, q{SELECT idem_acquire('jobs', 'bot', 'other')});
worker_pass();
set_clock(5 * $day);
is(sql(q{SELECT outcome, retry_after::text::interval <= interval '15 min' FROM idem_acquire('jobs', 'bot', 'ahead')}),
    'busy|t', 'it keeps others out, who are to come again soon');
is(sql(q{SELECT outcome FROM idem_requeue('jobs', 'bot', 'ahead')}), 'backoff', 'but may be requeued');
is(sql(q{SELECT outcome FROM idem_acquire('jobs', 'bot', 'ahead')}), 'acquired', 'and taken');
is(sql(q{SELECT outcome FROM idem_requeue('jobs', 'bot', 'ahead')}), 'busy', 'a lease of now may not');
my $before = sql(q{SELECT current_generation FROM idem_tables WHERE dedup = 'jobs'::regclass});
worker_pass();
is(sql(q{SELECT current_generation FROM idem_tables WHERE dedup = 'jobs'::regclass}),
    $before + 1, 'passes go on, and a ring opened in the future turns');
is(sql(q{SELECT opened_at <= clock_timestamp() FROM idem_generations
         WHERE dedup = 'jobs'::regclass AND generation = } . ($before + 1)), 't', 'as of now');
is(events('inbox'), 1000, 'in all this nothing was forgotten that is not old');

$node->stop;
done_testing();
