# A pg_dump that is running keeps neither claims nor rotation waiting, and dumps what was committed when it began.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node('autovacuum = off');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox');
    SELECT idem_accept('inbox', 'book', 'before the dump');
    CREATE TABLE locked_last ();
});

# pg_dump locks the tables in the order of their OIDs, so it has all locks but one when it comes to this one.
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE locked_last');
my $file = PostgreSQL::Test::Utils::tempdir . '/dump';
my $dump = IPC::Run::start([ 'pg_dump', '--dbname', $node->connstr('postgres'), '--file', $file ]);
my $waits = q{relation = 'locked_last'::regclass AND NOT granted};
$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE $waits") or die 'pg_dump did not wait';
is( $node->safe_psql(
        'postgres', qq{
        SELECT relation::regclass FROM pg_locks
        WHERE pid = (SELECT pid FROM pg_locks WHERE $waits)
            AND relation IN ('inbox'::regclass, 'inbox_g0'::regclass, 'inbox_g7'::regclass)
        ORDER BY relation}),
    "inbox\ninbox_g0\ninbox_g7",
    'pg_dump has locked the dedup table and its slots');

my $client = $node->background_psql('postgres');
my $ring = 'SELECT oldest_generation, current_generation FROM idem_control';
my $accept = q{SELECT outcome FROM idem_accept('inbox', 'book', '%s')};
is($client->query_safe(sprintf($accept, 'before the dump')), 'duplicate', 'duplicate beside a dump');
is($client->query_safe(sprintf($accept, 'beside the dump')), 'acquired', 'new event beside a dump');
$client->query_safe(q{CALL idem_rotate('inbox')});
is($client->query_safe($ring), '0|1', 'ring turns beside a dump');
is($client->query_safe(sprintf($accept, 'beside the dump, in the next generation')), 'acquired', 'new event in it');
$client->query_safe('DELETE FROM inbox_g0');
$client->query_safe(q{CALL idem_rotate('inbox')});
is($client->query_safe($ring), '1|2', 'generation is retired beside a dump');
$client->quit;

$locker->query_safe('ROLLBACK');
$locker->quit;
$dump->finish;
is($dump->full_result(0), 0, 'pg_dump ends well');

$node->safe_psql('postgres', 'CREATE DATABASE copy TEMPLATE template0');
$node->command_ok(
    [ 'psql', '--no-psqlrc', '--set=ON_ERROR_STOP=1', '--quiet', '--file', $file, '--dbname', $node->connstr('copy') ],
    'dump is restored');
is($node->safe_psql('copy', $ring), '0|0', 'dump has the ring as it was when it began');
is($node->safe_psql('copy', sprintf($accept, 'before the dump')), 'duplicate', 'dump has what was committed before it');
is($node->safe_psql('copy', sprintf($accept, 'beside the dump')), 'acquired', 'dump has nothing that came after');

$node->stop;
done_testing();
