# What stops one table's purge stops no other's, wherever it was raised; and what has stopped purging rings an alarm.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(q{
    autovacuum = off
    fsync = off
});
$node->safe_psql($_->[0], $_->[1])
  foreach ['postgres', 'CREATE EXTENSION idem'],
  ['postgres', q{SELECT idem_create_table(name, generations => 3, cold_window => '30 days') FROM unnest(ARRAY['bad', 'good']) name}],
  ['postgres', q{SELECT idem_accept(name::regclass, 'h', 'e') FROM unnest(ARRAY['bad', 'good']) name}];

sub alarms
{
    my ($where) = @_;
    return $node->safe_psql('postgres', "SELECT dedup, alarm FROM idem_alarms WHERE $where ORDER BY 1, 2");
}
sub age
{
    $node->safe_psql('postgres', q{UPDATE idem_generation SET opened_at = opened_at - interval '40 days'});
    return;
}

is(alarms('true'), '', 'all is well');

# An event trigger that raises below the pass: the touch trigger of "bad" is to be given back.
$node->safe_psql('postgres', $_)
  foreach 'ALTER TABLE bad_g0 DISABLE TRIGGER idem_touch',
  q{CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today, 1 of 2'; END $$},
  q{CREATE EVENT TRIGGER refuse ON ddl_command_start WHEN TAG IN ('CREATE TRIGGER') EXECUTE FUNCTION refuse()};
age();
is(alarms("alarm = 'turn_overdue'"), "bad|turn_overdue\ngood|turn_overdue", 'a turn that is overdue rings');
is(alarms("alarm = 'not_purged'"), "bad|not_purged\ngood|not_purged", 'no worker and no cron: that rings');
like($node->safe_psql('postgres', q{SELECT what_to_do FROM idem_alarms WHERE alarm = 'not_purged' LIMIT 1}),
    qr/not in shared_preload_libraries/, 'and says why nobody comes');
is($node->psql('postgres', 'CALL idem_purge()'), 0, 'a fault inside a trigger function does not end the pass');
is($node->safe_psql('postgres', q{SELECT current_generation FROM idem_control ORDER BY dedup}), "0\n1", 'the other table has turned');
like($node->safe_psql('postgres', q{SELECT last_error FROM idem_purge_status WHERE dedup = 'bad'::regclass}), qr/not today/,
    'the failure is told');
is(alarms('true'), 'bad|pass_failed', 'and rings, and nothing else does');

# The same failure in other numbers is no news.
$node->safe_psql('postgres', q{CREATE OR REPLACE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not today, 7 of 99'; END $$});
my $start = -s $node->logfile;
$node->safe_psql('postgres', 'CALL idem_purge()');
unlike(slurp_file($node->logfile, $start), qr/WARNING/, 'the same failure in other numbers is logged once');
$node->safe_psql('postgres', $_) foreach 'DROP EVENT TRIGGER refuse', 'CALL idem_purge()';
is(alarms('true'), '', 'mended: all is well');
is($node->safe_psql('postgres', 'SELECT count(last_pass) FROM idem_purge_status'), 2, 'passes by hand are on record');

# Somebody has locked a table of idem's own: the turn waits for that before it closes the gate, so claims go on.
my $locker = $node->background_psql('postgres');
age();
$locker->query_safe('BEGIN; LOCK TABLE idem_generation IN SHARE MODE');
my ($code, undef, $error) = $node->psql('postgres', q{CALL idem_rotate('good')});
like($error, qr/lock timeout/, q{a turn gives up where idem's own tables are locked});
is($node->safe_psql('postgres', q{SET lock_timeout = '1s'; SELECT outcome FROM idem_accept('good', 'h', 'beside')}), 'acquired', 'and claims go on');

# Views answer whatever is locked.
$locker->query_safe('COMMIT; BEGIN; LOCK TABLE good IN ACCESS EXCLUSIVE MODE');
is($node->safe_psql('postgres', "SET lock_timeout = '100ms'; SELECT count(*) FROM $_->[0]"), $_->[1], "$_->[0] waits for no lock")
  foreach ['idem_tables', 2], ['idem_purge_status', 2], ['idem_generations', 4];
like(alarms("alarm = 'turn_overdue'"), qr/good\|turn_overdue/, 'a locked table rings when it is overdue');
$locker->query_safe('COMMIT');
$locker->quit;

# A clock that was ahead.
$node->safe_psql('postgres', q{UPDATE idem_generation SET opened_at = opened_at + interval '400 days'});
like(alarms("alarm = 'clock_behind'"), qr/good\|clock_behind/, 'a time that is still to come rings');

# Settings of the database do not keep the worker from its work; a name that is misspelt rings.
$node->safe_psql('postgres', $_)
  foreach q{UPDATE idem_generation SET opened_at = opened_at - interval '440 days'}, 'CREATE ROLE nobody',
  'ALTER DATABASE postgres SET exit_on_error = on', 'ALTER DATABASE postgres SET role = nobody';
$start = -s $node->logfile;
restart_with($node, "shared_preload_libraries = 'idem'", 'idem.purge_naptime = 1', "idem.databases = 'postgres, psotgres'");
ok($node->poll_query_until('postgres', q{SELECT current_generation > 1 FROM idem_control WHERE dedup = 'good'::regclass}),
    'ALTER DATABASE … SET role does not stop the worker');
ok($node->wait_for_log(qr/WARNING:.*database "psotgres" in idem.databases does not exist/, $start), 'a misspelt name is told at start');
is(alarms("alarm = 'unknown_database'"), '|unknown_database', 'and rings');

$node->stop;
done_testing();
