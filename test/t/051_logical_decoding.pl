# Logical decoding sees every write of idem as an ordinary insert, update or delete of a partition, with the key of the
# row that is changed, and nothing of what was rolled back.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("autovacuum = off\nidem.backoff_jitter = 0", allows_streaming => 'logical');
my $slot = q{SELECT pg_create_logical_replication_slot('decoded', 'test_decoding')};
my (undef, undef, $stderr) = $node->psql('postgres', $slot);
plan skip_all => 'test_decoding is not installed' if $stderr =~ /could not access file "test_decoding"/;
is($stderr, '', 'slot for decoding');
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    SELECT idem_create_table('inbox', generations => 3);
    SELECT idem_create_table('outbox', mode => 'lease', generations => 3);
});

# The changes since the last call, one a line: table, operation, and of each row the columns asked for.
sub decoded
{
    my $changes = $node->safe_psql('postgres',
        q{SELECT data FROM pg_logical_slot_get_changes('decoded', NULL, NULL, 'include-xids', '0')});
    my @changes;
    foreach my $change (split /\n/, $changes)
    {
        next unless $change =~ /^table public\.(\w+): (\w+): (.*)/;
        my ($table, $operation, $row) = ($1, $2, $3);
        my @values = map { $row =~ /\b$_\[[^\]]*\]:'([^']*)'/ ? $1 : () } 'event_id', 'state';
        push @values, 'with its key' if $operation eq 'DELETE' && $row =~ /^key\[uuid\]:'[-0-9a-f]{36}'/;
        push @changes, join ' ', $table, $operation, @values;
    }
    return join "\n", @changes;
}

sub run_in_transaction
{
    $node->safe_psql('postgres', join "; ", 'BEGIN', @_, 'COMMIT');
    return;
}

my $acquire = q{SELECT idem_acquire('%s', 'h', '%s')};
my $commit = q{SELECT idem_commit('%s', 'h', '%s', result => '1', attempt => 1)};

decoded();
run_in_transaction(q{SELECT idem_accept('inbox', 'h', 'accepted')});
is(decoded(), 'inbox_g0 INSERT accepted done', 'accept');

run_in_transaction(sprintf($acquire, 'inbox', 'acquired'), sprintf($commit, 'inbox', 'acquired'));
is(decoded(), "inbox_g0 INSERT acquired done\ninbox_g0 UPDATE acquired done", 'acquire and commit with a result');

run_in_transaction(sprintf($acquire, 'outbox', 'leased'));
is(decoded(), 'outbox_g0 INSERT leased processing', 'acquire in lease mode');
run_in_transaction(q{SELECT idem_extend('outbox', 'h', 'leased', attempt => 1)});
is(decoded(), 'outbox_g0 UPDATE leased processing', 'heartbeat');
run_in_transaction(q{SELECT idem_release('outbox', 'h', 'leased', attempt => 1, error => 'no route')});
is(decoded(), 'outbox_g0 UPDATE leased failed', 'release');

run_in_transaction(
    'SAVEPOINT s',
    sprintf($acquire, 'inbox', 'rolled back'),
    'ROLLBACK TO s',
    q{SELECT idem_accept('inbox', 'h', 'kept')});
is(decoded(), 'inbox_g0 INSERT kept done', 'savepoint rolled back');
run_in_transaction(q{SELECT idem_accept('inbox', 'h', 'kept')});
is(decoded(), '', 'duplicate writes nothing');

run_in_transaction(sprintf($acquire, 'outbox', 'moved'));
decoded();
$node->safe_psql('postgres', "CALL idem_rotate('$_')") foreach 'inbox', 'outbox';
is(join("\n", grep { /idem_control/ } split /\n/, decoded()), "idem_control UPDATE\nidem_control UPDATE", 'rotation');
run_in_transaction(sprintf($commit, 'outbox', 'moved'));
is(decoded(), "outbox_g0 DELETE with its key\noutbox_g1 INSERT moved done", 'commit of a claim in a sealed generation');
run_in_transaction(sprintf($acquire, 'outbox', 'leased'));
is( decoded(),
    "outbox_g0 DELETE with its key\noutbox_g1 INSERT leased processing",
    'retake of an event in a sealed generation');

# An update by somebody else needs the key as well.
$node->safe_psql('postgres', q{UPDATE inbox SET expires_at = clock_timestamp()});
decoded();
$node->safe_psql('postgres', q{CALL idem_rotate('inbox')});
like(decoded(), qr/^inbox_g0 TRUNCATE$/m, 'emptied slot');

$node->stop;
done_testing();
