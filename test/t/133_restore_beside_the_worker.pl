# The worker may come to a dedup table that is just being restored. It makes nothing there that pg_restore is going to
# make, so the restore comes through without an error; and it switches on what a data-only restore has left switched off.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("shared_preload_libraries = 'idem'\nidem.purge_naptime = 1s\nidem.databases = 'copy'\nautovacuum = off");
$node->safe_psql('postgres', $_)
  foreach 'CREATE EXTENSION idem', q{SELECT idem_create_table('inbox', generations => 4)},
  q{SELECT FROM generate_series(1, 100) i, idem_accept('inbox', 'book', 'g0 ' || i)}, q{CALL idem_rotate('inbox')},
  q{SELECT FROM generate_series(1, 100) i, idem_accept('inbox', 'book', 'g1 ' || i)}, q{CALL idem_rotate('inbox')};
my $folder = PostgreSQL::Test::Utils::tempdir;
$node->command_ok([ 'pg_dump', '--format=custom', "--file=$folder/dump", $node->connstr('postgres') ], 'dump');
$node->command_ok([ 'pg_restore', '--list', "--file=$folder/list", "$folder/dump" ], 'list');
my @list = split /\n/, slurp_file("$folder/list");
append_to_file("$folder/before", join("\n", grep { !/ TRIGGER / } @list) . "\n");
append_to_file("$folder/triggers", join("\n", grep { / TRIGGER / } @list) . "\n");

# The worker has begun and finished a pass since.
sub wait_for_pass
{
    my $now = $node->safe_psql('copy', 'SELECT clock_timestamp()');
    $node->poll_query_until('copy',
        "SELECT started_at > '$now' AND finished_at > started_at FROM idem_worker_passes()", 't')
      or die 'no pass';
    return;
}

sub restore
{
    my ($what, @options) = @_;
    $node->command_ok(
        [ 'pg_restore', '--exit-on-error', @options, '--dbname', $node->connstr('copy'), "$folder/dump" ], $what);
    wait_for_pass();
    return;
}

my $triggers = q{SELECT string_agg(tgenabled::text, '' ORDER BY tgrelid) FROM pg_trigger WHERE tgname = 'idem_touch'};
my $known = q{SELECT outcome, count(*) FROM (SELECT 'g' || g || ' ' || i e FROM generate_series(0, 1) g,
              generate_series(1, 100) i) e, idem_accept('inbox', 'book', e) GROUP BY outcome};

$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
restore('all but the triggers, and a pass of the worker', "--use-list=$folder/before");
is($node->safe_psql('copy', $triggers), '', 'the worker has made no triggers');
is($node->safe_psql('copy', $known), 'duplicate|200', 'all is known');
restore('the triggers', "--use-list=$folder/triggers");
is($node->safe_psql('copy', $triggers), 'AAAA', 'they are as they were');
is($node->safe_psql('copy', q{SELECT (idem_filter('inbox')).slots}), '{0,1}', 'the worker has built the filters');
is($node->safe_psql('copy', $known), 'duplicate|200', 'all is known');
is($node->safe_psql('copy', q{SELECT last_error FROM idem_purge_status}), '', 'no failure is left');

# The data again, from another database, without the triggers.
$node->safe_psql('copy', 'TRUNCATE inbox');
is($node->safe_psql('copy', q{SELECT outcome FROM idem_accept('inbox', 'book', 'new')}), 'acquired', 'emptied by hand');
restore('the data', '--data-only', '--disable-triggers', map { "--table=inbox_g$_" } 0 .. 1);
is($node->safe_psql('copy', $known), 'duplicate|200', 'all is known');
is($node->safe_psql('copy', $triggers), 'AAAA', 'the worker has switched the triggers on');
is($node->safe_psql('copy', $known), 'duplicate|200', 'all is known');

# What a restore says of generations that have gone meanwhile does not keep others from taking their place.
$node->safe_psql('copy', q{INSERT INTO idem_generation (dedup, generation, opened_at) VALUES ('inbox', -1, now())});
$node->safe_psql('copy', q{INSERT INTO inbox SELECT (jsonb_populate_record(i, jsonb_build_object('slot', 3,
    'event_id', 'by hand', 'key', idem_key('book', 'by hand')))).* FROM inbox i WHERE event_id = 'new'});
wait_for_pass();
is($node->safe_psql('copy', q{SELECT last_error, oldest_generation FROM idem_purge_status}),
    '|-1', 'a slot that somebody else has filled is taken into the ring');
is($node->safe_psql('copy', q{SELECT outcome FROM idem_accept('inbox', 'book', 'by hand')}),
    'duplicate', 'what he has written is known');

$node->stop;
done_testing();
