# A dedup table that was restored without its registration (pg_dump of a table, of a schema, or of no data) is refused
# with a hint; once its owner attaches it, it remembers what it remembered before, and its ring turns.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("autovacuum = off\nidem.backoff_jitter = 0");

# The ring has turned past its end: generation 4 in slot 1 is current, and 3 in slot 0 and 2 in slot 2 hold events.
$node->safe_psql(
    'postgres', q{
    CREATE ROLE shop LOGIN;
    CREATE DATABASE source OWNER shop;
    \c source
    CREATE EXTENSION idem;
    CREATE SCHEMA shop AUTHORIZATION shop;
    SET SESSION AUTHORIZATION shop;
    SELECT idem_create_table('shop.inbox', generations => 3, mode => 'lease');
    CALL idem_rotate('shop.inbox');
    CALL idem_rotate('shop.inbox');
    SELECT idem_accept('shop.inbox', 'book', 'settled in generation 2');
    SELECT idem_acquire('shop.inbox', 'book', 'claimed in generation 2');
    SELECT idem_acquire('shop.inbox', 'book', 'released in generation 4');
    CALL idem_rotate('shop.inbox');
    SELECT idem_accept('shop.inbox', 'book', 'settled in generation 3');
    CALL idem_rotate('shop.inbox');
    SELECT idem_accept('shop.inbox', 'book', 'settled in generation 4', result => '{"cents": 100}');
    SELECT idem_release('shop.inbox', 'book', 'released in generation 4', attempt => 1, error => 'no balance');
});
is($node->safe_psql('source', 'SELECT slot, count(*) FROM shop.inbox GROUP BY slot ORDER BY slot'),
    "0|1\n1|2\n2|2", 'events are in all slots');

my $folder = PostgreSQL::Test::Utils::tempdir;

# Restores a dump by the options given to pg_dump into a fresh database and returns a session of the owner.
sub owner_of_restored
{
    my ($copy, $role, @options) = @_;
    my $file = "$folder/$copy";
    $node->command_ok([ 'pg_dump', '--username', $role, @options, '--file', $file, 'source' ], "$copy: pg_dump");
    $node->safe_psql('postgres', "CREATE DATABASE $copy OWNER shop TEMPLATE template0");
    if ($role eq 'shop')
    {
        $node->safe_psql($copy, 'CREATE EXTENSION idem');
        $node->safe_psql($copy, 'CREATE SCHEMA shop', extra_params => [ '--username', 'shop' ])
          if grep { $_ =~ /table/ } @options;
    }
    $node->command_ok(
        [ 'psql', '--username', $role, '--no-psqlrc', '--set=ON_ERROR_STOP=1', '--quiet', '--file', $file, $copy ],
        "$copy: restored by $role");

    my $owner = $node->background_psql($copy, on_error_stop => 0, extra_params => [ '--username', 'shop' ]);
    $owner->query_safe('\set VERBOSITY verbose');
    $owner->query(q{SELECT idem_acquire('shop.inbox', 'book', 'settled in generation 4')});
    like(
        $owner->{stderr},
        qr/ERROR:  42809: dedup table "inbox" is not registered\nHINT:  .*idem_attach_table/,
        "$copy: not registered");
    $owner->{stderr} = '';
    $owner->query_safe(q{SELECT idem_attach_table('shop.inbox', '1 hour', '10 days', 'lease')});
    return $owner;
}

sub acquire
{
    my ($owner, $event) = @_;
    return $owner->query_safe("SELECT outcome, attempt, result FROM idem_acquire('shop.inbox', 'book', '$event')");
}

my $ring = 'SELECT oldest_generation, current_generation FROM idem_control';
my %dump_options = (table => ['--table=shop.inbox*'], schema => ['--schema=shop']);
foreach my $copy (sort keys %dump_options)
{
    my $owner = owner_of_restored("dump_of_$copy", 'shop', @{ $dump_options{$copy} });
    is( $owner->query_safe('SELECT mode, hot_window, cold_window FROM idem_registry'),
        'lease|01:00:00|10 days',
        "$copy: attached with its policy");
    is($owner->query_safe($ring), '2|4', "$copy: slot with the latest claim is current");
    is( acquire($owner, 'settled in generation 4'),
        'duplicate|1|{"cents": 100}',
        "$copy: duplicate of the current generation");
    is(acquire($owner, "settled in generation $_"), 'duplicate|1|', "$copy: duplicate of generation $_") foreach 2, 3;
    is(acquire($owner, 'claimed in generation 2'), 'busy|1|', "$copy: lease runs");
    $owner->query_safe(q{SELECT idem_commit('shop.inbox', 'book', 'claimed in generation 2', attempt => 1)});
    is(acquire($owner, 'claimed in generation 2'), 'duplicate|1|', "$copy: lease is settled");
    is(acquire($owner, 'released in generation 4'), 'acquired|2|', "$copy: released event is acquired");
    is(acquire($owner, 'new'), 'acquired|1|', "$copy: new event is acquired");

    # As if what was settled in the oldest generation had expired.
    $owner->query_safe('DELETE FROM shop.inbox_g2');
    $owner->query_safe(q{CALL idem_rotate('shop.inbox')});
    is($owner->query_safe($ring), '3|5', "$copy: ring turns");
    is(acquire($owner, 'new'), 'busy|1|', "$copy: new event is remembered");
    $owner->quit;
}

my $owner = owner_of_restored('dump_of_no_data', 'postgres', '--schema-only');
is(acquire($owner, 'settled in generation 4'), 'acquired|1|', 'no data: event is acquired');
is(acquire($owner, 'settled in generation 4'), 'busy|1|', 'no data: from then on it is remembered');
$owner->query_safe(q{CALL idem_rotate('shop.inbox')});
is(acquire($owner, 'settled in generation 4'), 'busy|1|', 'no data: after rotation too');
$owner->quit;

$node->stop;
done_testing();
