# Filters over sealed generations spare a new event the look into them, and never change an answer: not where they are
# small and often wrong, not while they are built, not after a crash at any point of that, not where others have them too.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.purge_naptime = 1h
    autovacuum = off
    max_prepared_transactions = 10
    restart_after_crash = on
});
my $database = 'postgres';
$node->safe_psql('postgres', 'CREATE EXTENSION idem');

sub sql
{
    return $node->safe_psql($database, join(";\n", @_));
}

# So many sealed generations of so many events "G N".
sub fill
{
    my ($table, $generations, $sealed, $events) = @_;
    sql("SELECT idem_create_table('$table', generations => $generations)");
    foreach my $g (1 .. $sealed)
    {
        sql("SELECT FROM generate_series(1, $events) i, idem_accept('$table', 'book', '$g ' || i)");
        sql("CALL idem_rotate('$table')");
    }
    return;
}

# Outcomes of these deliveries, each with how often.
sub outcomes
{
    my ($table, $events) = @_;
    return sql("SELECT string_agg(outcome || ' ' || n, ', ' ORDER BY outcome)
                FROM (SELECT outcome, count(*) n FROM ($events) e (event), idem_accept('$table', 'book', event)
                      GROUP BY outcome) o");
}

sub outcomes_of_all
{
    my ($table, $sealed, $events) = @_;
    return outcomes($table, "SELECT g || ' ' || i FROM generate_series(1, $sealed) g, generate_series(1, $events) i");
}

# How often the primary keys of all slots were looked into by so many new deliveries, beyond the current one's.
my $series = 0;
sub looks_of_new
{
    my ($table, $events) = @_;
    my $looks = "SELECT sum(idx_scan) FROM pg_stat_user_indexes
                 WHERE relid IN (SELECT partition FROM idem_generations WHERE dedup = '$table'::regclass
                                 AND sealed_at IS NOT NULL)";
    my $before = sql($looks);
    $series++;
    is( sql(q{DO 'BEGIN PERFORM pg_stat_force_next_flush(); END'},
            "SELECT count(*) FROM generate_series(1, $events) i, idem_accept('$table', 'book', 'new $series ' || i)
             WHERE outcome = 'acquired'"),
        $events, "series $series: each new event is acquired");
    return sql($looks) - $before;
}

sub filtered_slots
{
    my ($table) = @_;
    return sql("SELECT (idem_filter('$table')).slots");
}

note('what they are for');
fill('inbox', 8, 6, 1000);
is(filtered_slots('inbox'), '{0,1,2,3,4,5}', 'all that is sealed is filtered');
cmp_ok(looks_of_new('inbox', 1000), '<', 60, 'of 6000 looks into sealed generations hardly any is needed');
is(outcomes_of_all('inbox', 6, 1000), 'duplicate 6000', 'all that was remembered is');

restart_with($node, 'idem.filter_memory = 0');
sql(q{CALL idem_purge()});
is(filtered_slots('inbox'), '', 'no memory: no filter');
is(looks_of_new('inbox', 1000), 6000, 'no memory: each generation is looked into');
is(outcomes_of_all('inbox', 6, 1000), 'duplicate 6000', 'no memory: all that was remembered is');

restart_with($node, 'idem.filter_memory = 1MB');
is(filtered_slots('inbox'), '', 'after a restart: no filter');
is(looks_of_new('inbox', 1000), 6000, 'after a restart: each generation is looked into');
sql(q{CALL idem_purge()});
is(filtered_slots('inbox'), '{0,1,2,3,4,5}', 'after a restart and a purge: all that is sealed is filtered');
cmp_ok(looks_of_new('inbox', 1000), '<', 60, 'after a restart and a purge: hardly any look');
is(outcomes_of_all('inbox', 6, 1000), 'duplicate 6000', 'after a restart and a purge: all that was remembered is');
sql('DROP TABLE inbox');

sql(answering());
note('rows of transactions that are open when their generation is sealed');
fill('inbox', 8, 1, 10);
sql('BEGIN', q{SELECT idem_accept('inbox', 'book', 'prepared')}, q{PREPARE TRANSACTION 'p'});
sql('BEGIN', q{SELECT idem_accept('inbox', 'book', 'undone prepared')}, q{PREPARE TRANSACTION 'q'});
my @holders = map { $node->background_psql('postgres') } 0 .. 1;
$_->query_safe('BEGIN') foreach @holders;
$holders[0]->query_safe($_)
  foreach q{SELECT idem_accept('inbox', 'book', 'open')},
  'SAVEPOINT s', q{SELECT idem_accept('inbox', 'book', 'in savepoint')}, 'RELEASE s',
  'SAVEPOINT s', q{SELECT idem_accept('inbox', 'book', 'savepoint rolled back')}, 'ROLLBACK TO s',
  q{SELECT idem_acquire('inbox', 'book', 'settled late')};
$holders[1]->query_safe(q{SELECT idem_accept('inbox', 'book', 'rolled back')});
sql(q{CALL idem_rotate('inbox')});
is(filtered_slots('inbox'), '{0,1}', 'sealed with open transactions: is filtered');
my @open = ('open', 'in savepoint', 'settled late', 'rolled back', 'prepared', 'undone prepared');
sub outcomes_in_order
{
    return join ' ', map { sql("SELECT answer('inbox', 'book', '$_')") } @_;
}
is(outcomes_in_order(@open), 'busy busy busy busy busy busy', 'while they are open: busy');
$holders[0]->query_safe(q{SELECT idem_commit('inbox', 'book', 'settled late', result => '1')});
$holders[0]->query_safe('COMMIT');
$holders[1]->query_safe('ROLLBACK');
sql(q{COMMIT PREPARED 'p'});
sql(q{ROLLBACK PREPARED 'q'});
is( outcomes_in_order(@open),
    'duplicate duplicate duplicate acquired duplicate acquired',
    'committed: duplicate; rolled back: acquired');
is(outcomes_in_order('savepoint rolled back'), 'acquired', 'rolled back to a savepoint: acquired');
is(outcomes_in_order('settled late', 'rolled back'), 'duplicate duplicate', 'once');
$_->quit foreach @holders;
sql('DROP TABLE inbox');

note('small filters, often wrong');
restart_with($node, 'idem.filter_memory = 64kB');
fill('inbox', 8, 4, 12000);
is(filtered_slots('inbox'), '{0,1,2,3}', 'a tiny filter');
is(sql(q{SELECT filter_bytes FROM idem_tables}), 64 * 1024, 'which takes all the memory there is');
my $looks = looks_of_new('inbox', 5000);
cmp_ok($looks, '>', 200, 'says "may be there" of many events that are not');
cmp_ok($looks, '<', 10000, 'and "not there" of many');
is(outcomes_of_all('inbox', 4, 12000), 'duplicate 48000', 'no event is lost');
is(outcomes('inbox', q{SELECT 'new ' || } . $series . q{ || ' ' || i FROM generate_series(1, 5000) i}),
    'duplicate 5000', 'none is taken twice');
is(sql('SELECT count(*) FROM (SELECT FROM inbox GROUP BY key HAVING count(*) > 1) d'), 0, 'none is stored twice');

note('memory that is given back');
fill('second', 8, 1, 100);
is(filtered_slots('second'), '', 'a second table gets no filter, as there is no memory left');
is(outcomes_of_all('second', 1, 100), 'duplicate 100', 'all the same it is exact');
sql('DROP TABLE inbox', 'CALL idem_purge()');
sql('CALL idem_purge()');
is(filtered_slots('second'), '{0}', 'when the first table is dropped the second one gets it');
is(sql(q{SELECT idem_create_table('inbox')}), 'inbox', 'the first is made again');
is(outcomes('inbox', q{SELECT '1 ' || i FROM generate_series(1, 100) i}), 'acquired 100', 'and remembers nothing');
sql('DROP TABLE inbox', 'DROP TABLE second');

note('several databases');
# A copy has tables of the same OIDs.
fill('inbox', 8, 1, 12000);
sql('CREATE DATABASE other TEMPLATE postgres');
$database = 'other';
is(filtered_slots('inbox'), '', 'a filter is not of the table with the same OID in another database');
is(outcomes('inbox', q{SELECT '1 ' || i FROM generate_series(1, 100) i}), 'duplicate 100', 'which is exact');
sql(q{SELECT idem_accept('inbox', 'book', 'only in other')}, );
sql(q{CALL idem_rotate('inbox')});
$database = 'postgres';
is(outcomes('inbox', q{SELECT 'only in other'}), 'acquired 1', 'an event of the one is new to the other');
restart_with($node);
$database = 'other';
sql('CALL idem_purge()');
is(filtered_slots('inbox'), '{0,1}', 'the other database has all the memory');
$database = 'postgres';
sql('CALL idem_purge()');
is(filtered_slots('inbox'), '', 'so the first has none');
is(outcomes('inbox', q{SELECT '1 ' || i FROM generate_series(1, 100) i}), 'duplicate 100', 'and is exact');
sql('DROP DATABASE other');
sql('CALL idem_purge()');
is(filtered_slots('inbox'), '{0}', 'until the other is dropped');
sql('DROP TABLE inbox');

note('interrupted builds');
restart_with($node, 'idem.filter_memory = 16MB');
sql(q{SELECT idem_create_table('inbox', generations => 4)},
    q{INSERT INTO inbox (key, state, attempt, first_seen_at, expires_at, failures, slot, handler, event_id)
      SELECT idem_key('book', '1 ' || i), 'done', 1, now(), now() + interval '30 days', 0, 0, 'book', '1 ' || i
      FROM generate_series(1, 500000) i});
sql(q{CALL idem_rotate('inbox')});
sql(q{SELECT idem_accept('inbox', 'book', 'next')});
is(filtered_slots('inbox'), '{0}', 'a large generation is filtered');

my $sample = q{SELECT '1 ' || i FROM generate_series(1, 500000, 100) i};

# Lets the worker begin, waits until it has built a small part of the filter, and then executes $statement, which may
# refer to its pid.
my $watcher;
sub when_it_builds
{
    my ($statement) = @_;
    $watcher = $node->background_psql('postgres');
    $watcher->query_safe('CREATE TEMP TABLE builder (pid int)');
    # A launcher which begins with the new setting, and is told of it all the same, would make two passes.
    $node->poll_query_until('postgres', q{SELECT wait_event_type = 'Extension' FROM pg_stat_activity
                                          WHERE backend_type = 'idem launcher'}) or die 'launcher is not idle';
    $node->append_conf('postgresql.conf', 'idem.purge = on');
    $node->reload;
    $watcher->query_safe(
        qq{DO \$\$
        BEGIN
            WHILE NOT EXISTS (SELECT FROM idem_worker_progress() WHERE phase = 'seal' AND blocks_done > 0)
            LOOP
                PERFORM pg_sleep(0.001);
            END LOOP;
            INSERT INTO builder SELECT pid FROM pg_stat_activity WHERE backend_type = 'idem purge worker';
            $statement;
        END \$\$});
    return $watcher->query_safe('TABLE builder');
}

sub in_the_middle
{
    my ($what, $memory_survives, $interrupt) = @_;
    sql(q{UPDATE inbox SET owner = owner WHERE event_id = '1 1'});    # takes the filter back
    restart_with($node, 'idem.purge = off');
    $interrupt->();
    $watcher->quit;
    restart_with($node, 'idem.purge = off') if !$memory_survives;
    $node->poll_query_until('postgres',
        q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'idem purge worker'})
      or die 'worker did not end';
    is(filtered_slots('inbox'), $memory_survives ? '{}' : '', "$what: nothing of it is used");
    is(outcomes('inbox', $sample), 'duplicate 5000', "$what: all that was remembered is");
    is(looks_of_new('inbox', 100), 100, "$what: each new event is looked for");
    sql('CALL idem_purge()');
    is(filtered_slots('inbox'), '{0}', "$what: the next pass builds it");
    is(outcomes('inbox', $sample), 'duplicate 5000', "$what: all that was remembered still is");
    cmp_ok(looks_of_new('inbox', 100), '<', 10, "$what: hardly any new event is looked for");
    return;
}

my $terminate = 'PERFORM pg_terminate_backend(pid) FROM builder';
my $cancel = 'PERFORM pg_cancel_backend(pid) FROM builder';
# Somebody else's row arrives where the builder has passed by.
my $write = q{UPDATE inbox SET owner = owner WHERE event_id = '1 1'};

in_the_middle('builder is terminated', 1, sub { when_it_builds($terminate) });
in_the_middle('builder is cancelled', 1, sub { when_it_builds($cancel) });
in_the_middle('crash of the builder', 0, sub {
    my $offset = -s $node->logfile;
    kill 'KILL', when_it_builds('NULL');
    $node->wait_for_log(qr/all server processes terminated; reinitializing/, $offset);
    $node->poll_query_until('postgres', 'SELECT 1', '1') or die 'server did not recover';
});
in_the_middle('immediate stop', 0, sub { when_it_builds('NULL'); $node->stop('immediate'); $node->start });
in_the_middle('somebody else writes', 1, sub { when_it_builds($write) });

$node->stop;
done_testing();
