# As long as a subscription may write to a dedup table, the subscriber doesn't turn, move or empty anything in it: rows
# stay where the publisher's next change of them looks. It purges once the subscription is dropped.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my %node;
foreach my $name ('publisher', 'subscriber')
{
    my $node = $node{$name} = start_node("shared_preload_libraries = 'idem'\nidem.purge = off\nautovacuum = off",
        name => $name, allows_streaming => 'logical');
    $node->safe_psql('postgres',
        q{CREATE EXTENSION idem; SELECT idem_create_table('outbox', mode => 'lease', generations => 3)});
}
my ($publisher, $subscriber) = @node{ 'publisher', 'subscriber' };

sub publish
{
    $publisher->safe_psql('postgres', $_) foreach @_;
    return;
}

sub copy_is_equal
{
    my ($what) = @_;
    my $rows = 'SELECT * FROM outbox ORDER BY slot, key';
    $publisher->wait_for_catchup('events');
    is($subscriber->safe_psql('postgres', $rows), $publisher->safe_psql('postgres', $rows), $what);
    return;
}

my $ring = q{SELECT oldest_generation, current_generation FROM idem_control};

publish(q{SELECT idem_acquire('outbox', 'send', 'waits')}, q{SELECT idem_accept('outbox', 'send', 'settled')});

foreach my $root ('false', 'true')
{
    # By partition, and by the table, which the subscriber knows under its own name then.
    publish("CREATE PUBLICATION events FOR TABLE outbox WITH (publish_via_partition_root = $root"
          . ($root eq 'true' ? q{, publish = 'insert')} : ')'));
    $subscriber->safe_psql('postgres', 'TRUNCATE outbox');
    $subscriber->safe_psql('postgres',
        q{CREATE SUBSCRIPTION events CONNECTION '} . $publisher->connstr . q{ dbname=postgres' PUBLICATION events});
    $subscriber->wait_for_subscription_sync($publisher, 'events', 'postgres');

    my (undef, undef, $stderr) = $subscriber->psql('postgres', q{CALL idem_rotate('outbox')});
    like($stderr, qr/ERROR:  dedup table "outbox" is written to by a subscription/, "root $root: turn is refused");
    like($stderr, qr/HINT:  Drop the subscription before this table takes over/, "root $root: with a hint");
    $subscriber->safe_psql('postgres',
        q{UPDATE idem_generation SET opened_at = opened_at - interval '1 year'});
    is($subscriber->psql('postgres', 'CALL idem_purge()'), 0, "root $root: a purge does nothing");
    is($subscriber->safe_psql('postgres', $ring), '0|0', "root $root: the ring stays where it is");
    last if $root eq 'true';

    # All that is settled in slot 0 expires, so a purge would move the one that is not, and empty it.
    publish(q{UPDATE outbox SET expires_at = clock_timestamp() WHERE event_id = 'settled'});
    copy_is_equal('an expired event');
    $subscriber->safe_psql('postgres', 'CALL idem_purge()');
    copy_is_equal('after a purge');

    # The expired one is claimed again, where it stands; the other is settled, and so moves to slot 1.
    publish(q{SELECT idem_accept('outbox', 'send', 'settled')}, q{CALL idem_rotate('outbox')},
        q{SELECT idem_commit('outbox', 'send', 'waits', attempt => 1)});
    copy_is_equal('claimed again and settled');
    $subscriber->safe_psql('postgres', 'CALL idem_purge()');

    # The publisher empties slot 0, and the subscriber with it.
    publish(q{UPDATE outbox SET expires_at = clock_timestamp() WHERE slot = 0}, q{CALL idem_rotate('outbox')});
    is($publisher->safe_psql('postgres', 'SELECT count(*) FROM outbox_g0'), 0, 'the publisher has emptied slot 0');
    copy_is_equal('emptied');
    $subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION events');
    publish('DROP PUBLICATION events');
}

$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION events');
$subscriber->safe_psql('postgres', 'CALL idem_purge()');
is($subscriber->safe_psql('postgres', $ring), '-2|0', 'without a subscription, a purge takes all slots into the ring');
is($subscriber->safe_psql('postgres', q{SELECT outcome FROM idem_acquire('outbox', 'send', 'waits')}),
    'duplicate', 'and what the publisher has sent is known');

$_->stop foreach $publisher, $subscriber;
done_testing();
