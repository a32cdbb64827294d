# A dedup table and its partitions may be renamed, moved to another schema and given to another owner; sessions which
# used it before go on using it, and its ring turns.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('autovacuum = off');
$node->safe_psql(
    'postgres', q{
    CREATE ROLE shop LOGIN;
    CREATE ROLE application LOGIN;
    CREATE SCHEMA moved;
    CREATE SCHEMA moved_too;
    CREATE EXTENSION idem;
    GRANT ALL ON SCHEMA public, moved, moved_too TO PUBLIC;
    SELECT idem_create_table('inbox', generations => 3);
    GRANT SELECT, INSERT, UPDATE ON inbox TO application;
});

my $session = $node->background_psql('postgres', on_error_stop => 0, extra_params => [ '--username', 'application' ]);
my $dba = $node->background_psql('postgres');
my $oid = $session->query_safe(q{SELECT 'inbox'::regclass::oid});
$session->query_safe(q{PREPARE accept (regclass, text) AS SELECT outcome FROM idem_accept($1, 'book', $2)});
is($session->query_safe("EXECUTE accept ($oid, 'first')"), 'acquired', 'new event');

sub goes_on
{
    my ($table, $what) = @_;
    my ($answer) = $session->query("SELECT outcome FROM idem_accept('$table', 'book', 'first')");
    is($answer, 'duplicate', "$what: duplicate");
    ($answer) = $session->query("SELECT outcome FROM idem_accept('$table', 'book', '$what')");
    is($answer, 'acquired', "$what: new event");
    ($answer) = $session->query("EXECUTE accept ($oid, '$what')");
    is($answer, 'duplicate', "$what: duplicate by a prepared statement");
    ($answer) = $session->query("SELECT outcome FROM idem_acquire('$table', 'book', 'first', hot_window => '1 day')");
    my ($name) = $table =~ /(\w+)$/;
    like($session->{stderr}, qr/dedup table "$name"/, "$what: messages tell the name of now");
    $session->{stderr} = '';
    return;
}

# Turns the ring.
sub ring_turns
{
    my ($table, $what) = @_;
    my $ring = "SELECT current_generation FROM idem_control WHERE dedup = '$table'::regclass";
    my $before = $dba->query_safe($ring);
    $dba->query_safe("CALL idem_rotate('$table')");
    is($dba->query_safe($ring), $before + 1, "$what: ring turns");
    return;
}

$dba->query_safe('ALTER TABLE inbox RENAME TO post');
goes_on('post', 'table renamed');
$dba->query_safe('ALTER TABLE inbox_g0 RENAME TO first_slot');
$dba->query_safe('ALTER INDEX inbox_g0_pkey RENAME TO first_slot_key');
goes_on('post', 'partition and index renamed');
$dba->query_safe('ALTER TABLE post SET SCHEMA moved');
goes_on('moved.post', 'table moved');
$dba->query_safe('ALTER TABLE inbox_g1 SET SCHEMA moved_too');
goes_on('moved.post', 'partition moved');
$dba->query_safe($_)
  foreach 'ALTER TABLE first_slot RENAME TO inbox_g2_', 'ALTER TABLE inbox_g2 RENAME TO inbox_g0',
  'ALTER TABLE inbox_g2_ RENAME TO inbox_g2';
goes_on('moved.post', 'partitions swapped names');
ring_turns('moved.post', 'renamed and moved');
goes_on('moved.post', 'renamed, moved and rotated');

# The slot that was the oldest, whatever it is called now, is emptied and opened again.
$dba->query_safe('UPDATE moved.post SET expires_at = clock_timestamp() WHERE slot = 0');
is($dba->query_safe('SELECT count(*) > 0 FROM inbox_g2'), 't', 'slot 0 is called inbox_g2 and has events');
ring_turns('moved.post', 'oldest generation has expired');
is($dba->query_safe('SELECT count(*) FROM inbox_g2'), 0, 'oldest generation has expired: its slot is emptied');
is($session->query_safe(q{SELECT outcome FROM idem_accept('moved.post', 'book', 'first')}),
    'acquired', 'expired event is acquired');
ring_turns('moved.post', 'slot is opened again');
goes_on('moved.post', 'ring turned round');

$dba->query_safe($_)
  foreach map { "ALTER TABLE $_ OWNER TO shop" } 'moved.post', 'inbox_g2', 'moved_too.inbox_g1', 'inbox_g0';
goes_on('moved.post', 'given to another owner');
$dba->query_safe('SET SESSION AUTHORIZATION shop');
$dba->query_safe(q{UPDATE moved.post SET expires_at = clock_timestamp() WHERE slot = 1});
ring_turns('moved.post', 'new owner');
goes_on('moved.post', 'new owner');
$dba->query_safe('RESET SESSION AUTHORIZATION');

$dba->query_safe('REVOKE ALL ON moved.post FROM application');
$session->query(q{SELECT outcome FROM idem_accept('moved.post', 'book', 'first')});
like($session->{stderr}, qr/permission denied for table post/, 'revoked: no privilege');
$session->{stderr} = '';
$dba->query_safe('GRANT SELECT, INSERT, UPDATE ON moved.post TO application');
goes_on('moved.post', 'granted again');

# Another table may take the name.
$dba->query_safe(q{ALTER TABLE inbox_g0 RENAME TO other});
$dba->query_safe(q{ALTER TABLE inbox_g2 RENAME TO another});
$dba->query_safe(q{SELECT idem_create_table('inbox')});
$dba->query_safe('GRANT SELECT, INSERT, UPDATE ON inbox TO application');
is($session->query_safe(q{SELECT outcome FROM idem_accept('inbox', 'book', 'first')}),
    'acquired', 'new table of the old name: new event');
goes_on('moved.post', 'new table of the old name');

$_->quit foreach $session, $dba;
$node->stop;
done_testing();
