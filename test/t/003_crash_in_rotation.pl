# A crash between any two steps of idem_rotate leaves the ring where its last COMMIT left it: no event that is to be
# remembered is lost, a generation that left the ring but was not emptied yet is emptied before its slot is opened
# again.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('autovacuum = off');    # it may hold a lock on a slot at the wrong moment
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', generations => 3);
});

my $client = $node->background_psql('postgres');

sub accept_event
{
    my ($event) = @_;
    return $client->query_safe("SELECT outcome FROM idem_accept('inbox', 'book', '$event')");
}

# Claims and settles an event which is forgotten at once.
sub accept_forgettable_event
{
    my ($event) = @_;
    $client->query_safe($_)
      foreach 'BEGIN', "SELECT outcome FROM idem_acquire('inbox', 'book', '$event')",
      "SELECT idem_commit('inbox', 'book', '$event', cold_window => '1 microsecond')", 'COMMIT';
    return;
}

sub ring
{
    return $client->query_safe(
        "SELECT oldest_generation, current_generation FROM idem_control WHERE dedup = 'inbox'::regclass");
}

sub rows_in
{
    my ($slot) = @_;
    return $client->query_safe("SELECT count(*) FROM inbox_g$slot");
}

sub rotate
{
    $client->query_safe(q{CALL idem_rotate('inbox')});
    return;
}

sub crash
{
    $node->stop('immediate');
    $client->quit;
    $node->start;
    $client = $node->background_psql('postgres');
    return;
}

# Holds idem_rotate up with a row lock on what its next step changes, stops the server meanwhile, and starts it again.
sub crash_where_rotation_changes
{
    my ($row) = @_;
    my $locker = $node->background_psql('postgres');
    $locker->query_safe("BEGIN; SELECT FROM $row FOR UPDATE");
    my $rotator = $node->background_psql('postgres');
    $rotator->query_until(qr/rotating/, "\\echo rotating\nCALL idem_rotate('inbox');\n");
    $node->poll_query_until('postgres',
        q{SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE query = 'CALL idem_rotate(''inbox'');'})
      or die 'idem_rotate did not wait';
    crash();
    $locker->quit;
    $rotator->{run}->finish;    # psql has ended, as its query was cut off
    return;
}

my $ring_row = q{idem_control WHERE dedup = 'inbox'::regclass};

accept_event('remembered');
crash_where_rotation_changes($ring_row);
is(ring(), '0|0', 'crash in opening a generation: not opened');
is(accept_event('remembered'), 'duplicate', 'crash in opening a generation: event is remembered');
rotate();
is(ring(), '0|1', 'crash in opening a generation: next rotation opens it');
is(accept_event('remembered'), 'duplicate', 'event is remembered in a sealed generation');

# A ring of generations 1 and 2, of which 1 can go.
$client->query_safe('TRUNCATE inbox_g0');
accept_forgettable_event($_) foreach 'forgotten 1', 'forgotten for good';
rotate();
is(ring(), '1|2', 'empty generation left the ring');
accept_event('remembered in 2');

crash_where_rotation_changes($ring_row);
is(ring(), '1|2', 'crash in retiring a generation: not retired');
is(rows_in(1), 2, 'crash in retiring a generation: it is not emptied');
is(accept_event('remembered in 2'), 'duplicate', 'crash in retiring a generation: event is remembered');

crash_where_rotation_changes(q{pg_class WHERE oid = 'inbox_g1_pkey'::regclass});
is(ring(), '2|2', 'crash in emptying a slot: its generation left the ring');
is(rows_in(1), 2, 'crash in emptying a slot: not emptied');
is(accept_event('remembered in 2'), 'duplicate', 'crash in emptying a slot: event is remembered');
is(accept_event('forgotten 1'), 'acquired', 'crash in emptying a slot: forgotten event is acquired anew');
is(accept_event('forgotten 1'), 'duplicate', 'crash in emptying a slot: once');

# Generation 3 is slot 0, 4 is slot 1 where the old rows still are.
rotate();
is(ring(), '2|3', 'ring turns on after the crash');
is(rows_in(1), 1, 'slot is not emptied before its turn');
crash_where_rotation_changes(q{pg_class WHERE oid = 'inbox_g1_pkey'::regclass});
is(ring(), '2|3', 'crash in emptying the next slot: not opened');
rotate();
is(ring(), '2|4', 'next rotation opens it');
is(rows_in(1), 0, 'slot is empty when it is opened');
is(accept_event($_), 'duplicate', "$_ is a duplicate to the end") foreach 'remembered in 2', 'forgotten 1';

# The same where a reader kept idem_rotate from emptying the slot, which the crash must not make anybody forget.
$client->query_safe('TRUNCATE inbox_g2, inbox_g0');
accept_forgettable_event('forgotten 4');
rotate();
is(ring(), '4|5', 'ring turned to generation 5');
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; SELECT count(*) FROM inbox_g1');
rotate();
is(ring(), '5|6', 'ring turns although somebody reads the retired generation');
is(rows_in(1), 1, 'what somebody reads is not emptied');
crash();
$reader->quit;
is(rows_in(1), 1, 'crash before emptying a slot: not emptied');
rotate();
is(ring(), '6|7', 'ring turns on after the crash, to the slot that was not emptied');
is(rows_in(1), 0, 'slot that was not emptied is empty when it is opened');
is(accept_event('forgotten 4'), 'acquired', 'forgotten event is acquired anew');

$client->quit;

$node->stop;
done_testing();
