# What idem counts is what its calls were answered, by whichever path and whether it was rolled back or not; it outlives
# restarts, is shown to whom it concerns, and ends with the table. A duplicate that comes after its event was forgotten is
# counted as late.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $settings = q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.purge_naptime = 1
    idem.backoff_jitter = 0
    max_prepared_transactions = 1
    autovacuum = off
};
my $node = start_node($settings, allows_streaming => 1);
$node->safe_psql('postgres', $_)
  foreach 'CREATE EXTENSION idem', q{SELECT idem_create_table('inbox')},
  q{SELECT idem_create_table('outbox', '1 hour', mode => 'lease')},
  q{SELECT idem_set_policy('outbox', max_attempts => 2)},
  q{CREATE FUNCTION act(payload jsonb) RETURNS jsonb LANGUAGE sql AS $$ SELECT to_jsonb(1 / payload::int) $$};

my @columns = qw(acquired retaken duplicate busy backoff dead conflict stale bypassed committed failed given_back
  lease_lost left_open late);

# The counts that are not zero, as "column=n …".
sub counts
{
    my ($where) = @_;
    my $row = $node->safe_psql('postgres',
        'SELECT ' . join(', ', map { "coalesce(sum($_), 0)" } @columns) . " FROM idem_stat WHERE $where");
    my @values = split /\|/, $row;
    return join ' ', map { $values[$_] ? "$columns[$_]=$values[$_]" : () } 0 .. $#columns;
}

# Each path in each mode counts in the columns that its answers name: statements, then what they add.
my $number = 0;
sub counts_as
{
    my ($table, $statements, $expected) = @_;
    my $handler = 'h' . ++$number;
    $node->psql('postgres', $statements =~ s/\bH\b/'$table', '$handler'/gr);
    is(counts("handler = '$handler'"), $expected, $statements);
    return;
}
counts_as('inbox', q{SELECT idem_accept(H, 'a'); SELECT idem_accept(H, 'a')}, 'acquired=1 duplicate=1 committed=1');
counts_as('inbox', q{BEGIN; SELECT idem_acquire(H, 'a'); SELECT idem_commit(H, 'a', result => '1'); COMMIT},
    'acquired=1 committed=1');
counts_as('inbox', q{BEGIN; SELECT idem_acquire(H, 'a'); SELECT idem_commit(H, 'a'); ROLLBACK}, 'acquired=1 committed=1');
counts_as('inbox', q{BEGIN; SELECT idem_acquire(H, 'a'); SELECT idem_release(H, 'a', error => 'x', retry_after => '1 hour'); COMMIT;
    SELECT idem_acquire(H, 'a')}, 'acquired=1 backoff=1 failed=1');
counts_as('inbox', q{SELECT idem_acquire(H, 'a')}, 'acquired=1 left_open=1');
counts_as('inbox', q{SELECT idem_once(H, 'a', 'act(jsonb)', '1'); SELECT idem_once(H, 'a', 'act(jsonb)', '1')},
    'acquired=1 duplicate=1 committed=1');
counts_as('inbox', q{SELECT idem_once(H, 'a', 'act(jsonb)', '0')}, 'acquired=1 failed=1');
counts_as('inbox', q{SELECT idem_accept(H, 'a', fingerprint => idem_fingerprint('1'::text));
    SELECT idem_accept(H, 'a', fingerprint => idem_fingerprint('2'::text))}, 'acquired=1 conflict=1 committed=1');
counts_as('inbox', q{SELECT idem_accept(H, 'a', occurred_at => now() - interval '40 days')}, 'stale=1');
counts_as('inbox', q{BEGIN; SELECT idem_acquire_many(H, ARRAY['a', 'b', 'a']); SELECT idem_commit_many(H, ARRAY['a', 'b']); COMMIT},
    'acquired=2 duplicate=1 committed=2');
counts_as('outbox', q{SELECT idem_acquire(H, 'a'); SELECT idem_acquire(H, 'a'); SELECT idem_commit(H, 'a', attempt => 1);
    SELECT idem_commit(H, 'a', attempt => 1); SELECT idem_acquire(H, 'a')}, 'acquired=1 duplicate=1 busy=1 committed=1');
counts_as('outbox', q{SELECT idem_acquire(H, 'a'); SELECT idem_release(H, 'a', attempt => 1); SELECT idem_acquire(H, 'a');
    SELECT idem_commit(H, 'a', attempt => 1)}, 'acquired=1 retaken=1 given_back=1 lease_lost=1');
counts_as('outbox', q{SELECT idem_acquire(H, 'a'); SELECT idem_release(H, 'a', attempt => 1, error => 'x', retry_after => '0');
    SELECT idem_acquire(H, 'a'); SELECT idem_release(H, 'a', attempt => 2, error => 'x'); SELECT idem_acquire(H, 'a')},
    'acquired=1 retaken=1 dead=1 failed=2');
counts_as('outbox', q{SELECT idem_receive(H, 'a'); SELECT idem_receive(H, 'a'); SELECT * FROM idem_due(H)},
    'acquired=1 retaken=1 duplicate=1');
counts_as('inbox', q{SELECT idem_set_policy('inbox', on_unavailable => 'allow'); BEGIN READ ONLY; SELECT idem_acquire(H, 'a');
    SELECT idem_commit(H, 'a'); COMMIT; SELECT idem_set_policy('inbox', on_unavailable => 'reject')}, 'bypassed=1');
counts_as('inbox', q{BEGIN; SELECT idem_acquire(H, 'a'); SELECT idem_commit(H, 'a'); PREPARE TRANSACTION 'p';
    SELECT idem_acquire(H, 'a'); ROLLBACK PREPARED 'p'}, 'acquired=1 busy=1 committed=1');

# What idem_due hands out is no redelivery; a duplicate is one, and so is busy.
is($node->safe_psql('postgres', q{SELECT redelivered FROM idem_window_advice('outbox', 'h14')}), 1, 'redelivered events');
is($node->safe_psql('postgres', q{SELECT work_max > '0' FROM idem_window_advice('outbox', 'h11')}), 't', 'work is measured');

is($node->safe_psql('postgres', q{SELECT stale_age_max BETWEEN '40 days' AND '40 days 1 hour' FROM idem_stat WHERE stale > 0}),
    't', 'how late a stale event came');

# Restarts
my $before = counts('true');
$node->restart;
is(counts('true'), $before, 'a clean restart keeps the numbers');
$node->safe_psql('postgres', $_) foreach 'ALTER SYSTEM SET idem.purge = on', 'SELECT pg_reload_conf()';
$node->safe_psql('postgres', q{SELECT idem_accept('inbox', 'kept', i::text) FROM generate_series(1, 500) i});
my $file = $node->data_dir . '/pg_stat/idem.stat';
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM idem_worker_passes() WHERE finished_at IS NOT NULL}), 'a pass');
my $saved = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
ok($node->poll_query_until('postgres', "SELECT started_at > '$saved' FROM idem_worker_passes()"), 'and another one');
$node->stop('immediate');
$node->start;
is(counts(q{handler = 'kept'}), 'acquired=500 committed=500', 'a crash keeps what was there at the latest pass');
is($node->safe_psql('postgres', q{SELECT acquired + duplicate > 0 FROM idem_stat WHERE handler = 'h1'}), 't', 'and what was before');

# A file that is damaged counts for nothing.
$node->stop;
append_to_file("$file.copy", slurp_file($file));
truncate $file, 100;
$node->start;
is(counts('true'), '', 'a damaged file');
$node->log_check('a damaged file is told', 0, log_like => [qr/idem could not read its statistics/])
  if $node->can('log_check');
$node->stop;
rename "$file.copy", $file;
$node->start;
is(counts(q{handler = 'kept'}), 'acquired=500 committed=500', 'the whole file');

# Who may see and reset them
$node->safe_psql('postgres', $_)
  foreach 'CREATE ROLE owner LOGIN', 'CREATE ROLE other LOGIN', 'CREATE ROLE monitor LOGIN',
  'GRANT pg_read_all_stats TO monitor', 'ALTER TABLE inbox OWNER TO owner';
my $as = sub { my ($role, $sql) = @_; return $node->psql('postgres', $sql, extra_params => [ '-U', $role, '-v', 'VERBOSITY=sqlstate' ], on_error_stop => 0); };
foreach my $case (
    [ owner => "inbox" ], [ other => '' ], [ monitor => "inbox\noutbox" ])
{
    my ($role, $tables) = @$case;
    my ($code, $out) = $as->($role, 'SELECT dedup FROM idem_stat GROUP BY dedup ORDER BY dedup::text');
    is($out, $tables, "$role sees the numbers of these tables");
}
my (undef, undef, $stderr) = $as->('other', q{SELECT idem_stat_reset('inbox')});
like($stderr, qr/42501/, 'only the owner resets');
(undef, undef, $stderr) = $as->('other', q{SELECT * FROM idem_window_advice('inbox')});
like($stderr, qr/42501/, 'advice is for the owner');
(undef, undef, $stderr) = $as->('monitor', q{SELECT * FROM idem_window_advice('inbox', 'nobody')});
like($stderr, qr/42704/, 'an unknown handler');
(undef, undef, $stderr) = $as->('monitor', q{SELECT * FROM idem_window_advice('pg_class')});
like($stderr, qr/42809/, 'no dedup table');
$as->('owner', 'SELECT idem_stat_reset()');
is(counts(q{dedup = 'inbox'::regclass}), '', 'reset');
isnt(counts(q{dedup = 'outbox'::regclass}), '', 'of the own tables only');

# A dropped table's numbers go; handlers beyond the setting are counted together.
$node->safe_psql('postgres', 'DROP TABLE outbox');
ok($node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM idem_stat_rows()'), 'the table is gone, and so are its numbers');
restart_with($node, 'idem.stat_handlers = 2');
$node->safe_psql('postgres', q{SELECT idem_accept('inbox', 'handler ' || i, 'a') FROM generate_series(1, 10) i});
is($node->safe_psql('postgres', 'SELECT count(*), sum(acquired) FROM idem_stat'), '3|10', 'others are counted together');
is($node->safe_psql('postgres', 'SELECT acquired FROM idem_stat WHERE dedup IS NULL'), 8, 'in one row');
restart_with($node, 'idem.stat_handlers = 100');

# Late duplicates
$node->safe_psql('postgres', q{SELECT idem_create_table('short', '1 ms', '400 ms', generations => 3)});
$node->safe_psql('postgres', q{SELECT idem_accept('short', 'book', i::text) FROM generate_series(1, 100) i});
ok($node->poll_query_until('postgres', 'SELECT NOT EXISTS (SELECT FROM short)'), 'forgotten');
$node->safe_psql('postgres', q{SELECT idem_accept('short', 'book', i::text) FROM generate_series(91, 200) i});
is(counts(q{handler = 'book' AND dedup = 'short'::regclass}), 'acquired=210 committed=210 late=10',
    'events that come again once they are forgotten are new, and late');
is($node->safe_psql('postgres', q{SELECT late_by_chance BETWEEN 0 AND 1 FROM idem_stat WHERE dedup = 'short'::regclass}),
    't', 'hardly any by chance');
$node->wait_for_log(qr/LOG:  cold_window of dedup table "short" is too short/);

# A view that is looked at all the time waits for nobody.
$node->safe_psql('postgres', q{SELECT idem_create_table('watched', '1 hour', mode => 'lease', generations => 3)});
$node->safe_psql('postgres', q{SELECT idem_acquire('watched', 'send', 'a'), idem_receive('watched', 'send', 'b')});
my $unsettled = q{SELECT handler, state, events FROM idem_unsettled WHERE dedup = 'watched'::regclass};
is($node->safe_psql('postgres', $unsettled), "send|pending|1\nsend|processing|1", 'unsettled events');
my $holder = $node->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE watched_g1');
is($node->safe_psql('postgres', "SET lock_timeout = '60s'; $unsettled"), '||', 'of a table that is locked: null');
$holder->quit;

# A standby counts nothing, and does not fail.
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
$standby->safe_psql('postgres', 'SELECT count(*) FROM idem_stat, idem_unsettled');
my $acquired = $standby->safe_psql('postgres', 'SELECT coalesce(sum(acquired + bypassed), 0) FROM idem_stat');
$standby->psql('postgres', q{SELECT idem_accept('inbox', 'standby', 'a')});
is($standby->safe_psql('postgres', 'SELECT coalesce(sum(acquired + bypassed), 0) FROM idem_stat'), $acquired, 'standby');

done_testing();
