# Partitions may be rewritten, reordered, given constraints and replaced between two calls of sessions which know them;
# what is remembered stays remembered, and every constraint holds for idem's writes too.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('autovacuum = off');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('outbox', mode => 'lease', generations => 3);
    SELECT idem_accept('outbox', 'send', 'sealed', result => '{"id": 1}');
    SELECT idem_acquire('outbox', 'send', 'sealed and claimed ' || n) FROM generate_series(1, 30) n;
    CALL idem_rotate('outbox');
    SELECT idem_accept('outbox', 'send', 'current', result => '{"id": 2}');
});

my $dba = $node->background_psql('postgres');
my @sessions = map { $node->background_psql('postgres', on_error_stop => 0) } 1 .. 2;
$_->query_safe('\set VERBOSITY sqlstate') foreach @sessions;

sub acquire
{
    my ($session, $event) = @_;
    return $session->query_safe("SELECT outcome, attempt, result FROM idem_acquire('outbox', 'send', '$event')");
}

my $claimed = 0;

sub claims_go_on
{
    my ($what) = @_;
    my ($first, $second) = @sessions;
    is(acquire($first, 'sealed'), 'duplicate|1|{"id": 1}', "$what: duplicate of the sealed generation");
    is(acquire($second, 'current'), 'duplicate|1|{"id": 2}', "$what: duplicate of the current generation");
    is(acquire($first, $what), 'acquired|1|', "$what: new event");
    is(acquire($second, $what), 'busy|1|', "$what: lease runs");
    $second->query_safe("SELECT idem_commit('outbox', 'send', '$what', attempt => 1, result => '3')");
    is(acquire($first, $what), 'duplicate|1|3', "$what: settled");

    # Settling moves it from the one partition to the other.
    my $event = 'sealed and claimed ' . ++$claimed;
    $first->query_safe("SELECT idem_commit('outbox', 'send', '$event', attempt => 1)");
    is(acquire($second, $event), 'duplicate|1|', "$what: settled in the next generation");
    return;
}

claims_go_on('as it was made');

foreach my $command (
    'VACUUM FULL outbox_g%d',
    'CLUSTER outbox_g%1$d USING outbox_g%1$d_pkey',
    'REINDEX TABLE outbox_g%d',
    'VACUUM (FREEZE, ANALYZE) outbox_g%d',
    'ALTER TABLE outbox_g%d SET (fillfactor = 50)',
    'ALTER TABLE outbox_g%d SET UNLOGGED',
    'ALTER TABLE outbox_g%d SET LOGGED',
    'ALTER TABLE outbox_g%d ALTER COLUMN result SET STORAGE EXTERNAL, ALTER COLUMN handler SET STATISTICS 10',
    'ALTER TABLE outbox_g%1$d DROP CONSTRAINT outbox_g%1$d_pkey, ADD CONSTRAINT outbox_g%1$d_pkey PRIMARY KEY (key)',
    'DROP INDEX outbox_g%d_claimable_at_idx',
    'CREATE INDEX outbox_g%1$d_claimable_at_idx ON outbox_g%1$d (claimable_at, event_id) WHERE claimable_at IS NOT NULL'
  )
{
    $dba->query_safe(sprintf($command, $_)) foreach 0 .. 2;
    claims_go_on(sprintf($command =~ s/1\$//gr, 0, 0, 0, 0));
}

# Within one transaction as well, as far as the locks of its claims let the other in.
my ($first, $second) = @sessions;
$first->query_safe('BEGIN');
is(acquire($first, 'in a transaction'), 'acquired|1|', 'partition rewritten within a transaction: new event');
is(acquire($first, 'sealed'), 'duplicate|1|{"id": 1}', 'partition rewritten within a transaction: duplicate before');
$dba->query_safe('VACUUM FULL outbox_g0');
is(acquire($first, 'sealed'), 'duplicate|1|{"id": 1}', 'partition rewritten within a transaction: duplicate after');
is(acquire($first, 'in a transaction too'),
    'acquired|1|', 'partition rewritten within a transaction: another new event');
$first->query_safe('COMMIT');
is(acquire($second, 'in a transaction'), 'busy|1|', 'partition rewritten within a transaction: lease runs');

# What idem writes has to satisfy a constraint that is added to the table.
$dba->query_safe(q{ALTER TABLE outbox ADD CONSTRAINT ids_are_short CHECK (length(event_id) < 200)});
my $too_long = 'x' x 200;
is(sqlstate_of($_, "SELECT idem_acquire('outbox', 'send', '$too_long')"), '23514', 'check constraint holds')
  foreach @sessions;
is($dba->query_safe(q{SELECT count(*) FROM outbox WHERE length(event_id) = 200}),
    0, 'what the constraint refuses is not written');
claims_go_on('check constraint');
$dba->query_safe(q{ALTER TABLE outbox DROP CONSTRAINT ids_are_short});
is(acquire($first, $too_long), 'acquired|1|', 'check constraint dropped');

# A partition is found by its bound and a column by its name.
my $columns = $dba->query_safe(
    q{SELECT string_agg(attname, ', ') FROM pg_attribute WHERE attrelid = 'outbox_g1'::regclass AND attnum > 0});
my $definitions = $dba->query_safe(
    q{SELECT string_agg(format('%I %s %s %s', attname, format_type(atttypid, atttypmod),
        CASE WHEN attcollation = '"C"'::regcollation THEN 'COLLATE "C"' END, CASE WHEN attnotnull THEN 'NOT NULL' END),
        ', ' ORDER BY attnum DESC) FROM pg_attribute WHERE attrelid = 'outbox_g1'::regclass AND attnum > 0});
$dba->query_safe($_)
  foreach "CREATE TABLE reordered ($definitions, PRIMARY KEY (key))",
  'BEGIN',
  'ALTER TABLE outbox DETACH PARTITION outbox_g1',
  "INSERT INTO reordered ($columns) SELECT $columns FROM outbox_g1",
  'ALTER TABLE outbox ATTACH PARTITION reordered FOR VALUES IN (1)',
  'COMMIT';
claims_go_on('partition with other order of columns');
is($dba->query_safe('SELECT count(*) > 0 FROM reordered WHERE event_id ~ \'order of columns\''),
    't', 'partition with other order of columns takes new events');
$dba->query_safe(q{CALL idem_rotate('outbox')});
claims_go_on('partition with other order of columns, sealed');

# A partition that is missing is noticed, and its return as well.
$dba->query_safe('ALTER TABLE outbox DETACH PARTITION reordered');
is(sqlstate_of($_, q{SELECT idem_acquire('outbox', 'send', 'detached')}), '42809', 'partition detached: refused')
  foreach @sessions;
$dba->query_safe('ALTER TABLE outbox ATTACH PARTITION reordered FOR VALUES IN (1)');
claims_go_on('partition attached again');

is($dba->query_safe('SELECT count(*) - count(DISTINCT key) FROM outbox'), 0, 'every event is remembered once');
$_->quit foreach @sessions, $dba;
$node->stop;
done_testing();
