# A cold window shortened from thirty days to one, day by day: what was remembered for thirty days stays remembered, and
# what comes later takes the room of the new window and of one generation of the old one, at any time; in the end that of
# the new window alone. What has expired in the middle of the ring is emptied there, unless somebody is at it.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use ClockTest;

plan skip_all => 'no C compiler to build the clock of the test with' if !build_clock();

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'idem'\nidem.purge = off\nidem.clock_patience = 0\nautovacuum = off\nclient_min_messages = error");
start_with_clock($node);
my $session = $node->background_psql('postgres');
$session->query_safe($_) foreach 'CREATE EXTENSION idem', q{SELECT idem_create_table('inbox')};

my $hour = 0;
my $number = 0;

# Ten events in six hours, then a pass.
sub six_hours
{
    $hour += 6;
    set_clock($hour * 3600);
    my $last = $number + 10;
    $session->query_safe(
        "SELECT count(*) FROM generate_series($number + 1, $last) i, idem_accept('inbox', 'book', 'e' || i)");
    $session->query_safe(q{CALL idem_purge('inbox')});
    $number = $last;
    return;
}

sub rows_after
{
    my ($event) = @_;
    return $session->query_safe("SELECT count(*) FROM inbox WHERE substr(event_id, 2)::int > $event");
}

six_hours() foreach 1 .. 4 * 20;
is(rows_after(0), 800, 'twenty days are remembered');
$session->query_safe(q{SELECT idem_set_policy('inbox', cold_window => '1 day')});
my $last_of_before = $session->query_safe('SELECT current_generation FROM idem_tables');

note('somebody reads what is to be emptied');
my $middle = '';
while ($middle eq '')
{
    die 'no generation was sealed in ten days' if $hour > 30 * 24;
    six_hours();
    $middle = $session->query_safe(
        "SELECT max(partition::text) FROM idem_generations WHERE generation > $last_of_before AND events > 0");
}
my $reader = $node->background_psql('postgres');
$reader->query_safe($_) foreach 'BEGIN', "SELECT count(*) FROM $middle";
six_hours() foreach 1 .. 6;
cmp_ok($session->query_safe("SELECT count(*) FROM $middle"), '>', 0, 'it stays');
$reader->query_safe('COMMIT');
six_hours();
is($session->query_safe("SELECT count(*) FROM $middle"), 0, 'and goes when he is through');
is($session->query_safe("SELECT count(*) FROM idem_generations WHERE partition = '$middle'::regclass AND events = 0"),
    1, 'but for the room in the ring');

my $most = 0;
my $duplicates = 0;
foreach my $day (1 .. 20)
{
    six_hours() foreach 1 .. 4;
    my $rows = rows_after(800);
    $most = $rows if $rows > $most;
    # The oldest that still lives, of before and of after.
    my $before = $hour > 30 * 24 ? ($hour / 24 - 30) * 40 + 20 : 20;
    my $after = $number - 30;
    foreach my $event ($before > 780 ? () : $before, $after)
    {
        my $outcome = $session->query_safe("SELECT outcome FROM idem_accept('inbox', 'book', 'e$event')");
        $duplicates++ if $outcome eq 'duplicate';
        is($outcome, 'duplicate', "day $day: event $event is remembered");
    }
}
cmp_ok($most, '<=', 40 * (1 + 5) + 20, "what came later took $most rows: a day, and a generation of thirty days");

six_hours() foreach 1 .. 4 * 10;
cmp_ok(rows_after(0), '<=', 40 * 8 / 6 + 20, 'in the end it is as if it had been a day from the beginning');
is($session->query_safe(q{SELECT last_error FROM idem_purge_status WHERE last_error IS NOT NULL}), '', 'no pass failed');

$_->quit foreach $reader, $session;
$node->stop;
done_testing();
