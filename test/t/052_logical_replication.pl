# A subscriber gets all that a dedup table remembers, and where its table came from a schema-only dump it takes over
# from the publisher by idem_attach_table. A publication by the partitions' root carries inserts: the root has no
# replica identity.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $publisher = start_node("autovacuum = off\nidem.backoff_jitter = 0\nmax_prepared_transactions = 10",
    name => 'publisher', allows_streaming => 'logical');
$publisher->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('outbox', mode => 'lease', generations => 3);
    CREATE PUBLICATION by_partition FOR TABLE outbox;
    CREATE PUBLICATION inserts_by_root FOR TABLE outbox WITH (publish_via_partition_root = true, publish = 'insert');
    SELECT idem_accept('outbox', 'send', 'settled before', result => '{"id": 1}');
    SELECT idem_acquire('outbox', 'send', 'claimed before');
});

my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init(allows_streaming => 'logical');
$subscriber->append_conf('postgresql.conf', 'idem.backoff_jitter = 0');
$subscriber->start;
my $dump = PostgreSQL::Test::Utils::tempdir . '/dump';
$publisher->command_ok(
    [ 'pg_dump', '--schema-only', '--no-publications', '--file', $dump, $publisher->connstr('postgres') ],
    'schema-only dump');
foreach my $copy ('by_partition', 'inserts_by_root')
{
    $subscriber->safe_psql('postgres', "CREATE DATABASE $copy TEMPLATE template0");
    $subscriber->command_ok(
        [ 'psql', '--no-psqlrc', '--set=ON_ERROR_STOP=1', '--quiet', '--file', $dump, $subscriber->connstr($copy) ],
        "$copy: restored");
    $subscriber->safe_psql($copy,
        "CREATE SUBSCRIPTION $copy CONNECTION '" . $publisher->connstr . " dbname=postgres' PUBLICATION $copy");
}
$subscriber->wait_for_subscription_sync($publisher, $_, $_) foreach 'by_partition', 'inserts_by_root';

sub copy_is_equal
{
    my ($what) = @_;
    my $rows = 'SELECT * FROM outbox ORDER BY key';
    $publisher->wait_for_catchup('by_partition');
    is($subscriber->safe_psql('by_partition', $rows), $publisher->safe_psql('postgres', $rows), $what);
    return;
}

my $client = $publisher->background_psql('postgres');

sub publish
{
    $client->query_safe($_) foreach @_;
    return;
}

copy_is_equal('rows from before the subscription');

publish(
    q{SELECT idem_acquire('outbox', 'send', 'claimed')},
    q{SELECT idem_acquire('outbox', 'send', 'released', payload => '{"to": "A"}')},
    q{SELECT idem_accept('outbox', 'send', 'batched', 'resend')});
copy_is_equal('inserts');

publish(
    q{SELECT idem_commit('outbox', 'send', 'claimed', attempt => 1, result => '{"id": 2}')},
    q{SELECT idem_release('outbox', 'send', 'released', attempt => 1, error => 'no route')},
    q{SELECT idem_extend('outbox', 'send', 'claimed before', attempt => 1)});
copy_is_equal('updates');

publish(
    q{CALL idem_rotate('outbox')},
    q{SELECT idem_commit('outbox', 'send', 'claimed before', attempt => 1, result => '{"id": 3}')},
    q{SELECT idem_acquire('outbox', 'send', 'released', hot_window => '1 microsecond')});
copy_is_equal('deletes, rows that moved to the next generation');

publish(
    'BEGIN; SAVEPOINT s',
    q{SELECT idem_accept('outbox', 'send', 'rolled back')},
    'ROLLBACK TO s',
    q{SELECT idem_accept('outbox', 'send', 'after it')},
    'COMMIT',
    'BEGIN',
    q{SELECT idem_accept('outbox', 'send', 'prepared')},
    q{PREPARE TRANSACTION 'prepared'},
    q{COMMIT PREPARED 'prepared'});
copy_is_equal('savepoints and prepared transactions');

$publisher->wait_for_catchup('inserts_by_root');
my $events = 'SELECT DISTINCT event_id FROM outbox ORDER BY event_id';
is( $subscriber->safe_psql('inserts_by_root', $events),
    $publisher->safe_psql('postgres', $events),
    'inserts by root: every event');

# What is not registered is not claimed by mistake while the publisher lives.
my (undef, undef, $stderr) = $subscriber->psql('by_partition', q{SELECT idem_acquire('outbox', 'send', 'claimed')});
like($stderr, qr/dedup table "outbox" is not registered/, 'subscriber does not claim');

# Slot 0 is emptied and opened again, and an event which was there comes back to it.
publish(
    q{SELECT idem_acquire('outbox', 'send', 'comes back', hot_window => '1 microsecond')},
    q{UPDATE outbox SET expires_at = clock_timestamp() WHERE slot = 0},
    q{CALL idem_rotate('outbox')},
    q{CALL idem_rotate('outbox')},
    q{SELECT idem_accept('outbox', 'send', 'settled before')});
is($publisher->safe_psql('postgres', 'SELECT oldest_generation, current_generation FROM idem_control'),
    '1|3', 'ring has turned round');
is($publisher->safe_psql('postgres', q{SELECT slot FROM outbox WHERE event_id = 'settled before'}),
    0, 'event has come back to its slot');
copy_is_equal('slot emptied and opened again');

# The publisher is gone, the subscriber goes on.
$subscriber->safe_psql('by_partition', $_)
  foreach 'ALTER SUBSCRIPTION by_partition DISABLE',
  'ALTER SUBSCRIPTION by_partition SET (slot_name = NONE)', 'DROP SUBSCRIPTION by_partition';
$publisher->stop('immediate');
$client->quit;
$subscriber->safe_psql('by_partition', q{SELECT idem_attach_table('outbox', mode => 'lease')});
my %expected = (
    'settled before' => 'duplicate|1|',
    'claimed before' => 'duplicate|1|{"id": 3}',
    'released' => 'acquired|3|',
    'after it' => 'duplicate|1|',
    'rolled back' => 'acquired|1|',
    'prepared' => 'duplicate|1|');
$client = $subscriber->background_psql('by_partition');
foreach my $event (sort keys %expected)
{
    is($client->query_safe("SELECT outcome, attempt, result FROM idem_acquire('outbox', 'send', '$event')"),
        $expected{$event}, "after switching over: $event");
}
$client->query_safe('UPDATE outbox SET expires_at = clock_timestamp() WHERE slot = 1');
$client->query_safe(q{CALL idem_rotate('outbox')});
is($client->query_safe('SELECT oldest_generation, current_generation FROM idem_control'),
    '3|4', 'after switching over: ring turns');
$client->quit;

$subscriber->stop;
done_testing();
