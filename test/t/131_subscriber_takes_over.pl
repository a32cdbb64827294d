# Both publisher and subscriber have made the dedup table, so it is registered on both sides. When the publisher is gone
# the subscriber takes over, with nothing more to do: each event is known, in whichever slot its row is, and turns and
# purges of the subscriber's own lose none.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

foreach my $preload ('', 'idem')
{
    my $how = $preload ? 'preloaded' : 'not preloaded';
    my %node;
    foreach my $name ('publisher', 'subscriber')
    {
        my $node = $node{$name} = start_node(
            "shared_preload_libraries = '$preload'\nidem.purge = off\nidem.backoff_jitter = 0\nautovacuum = off",
            name => "$name$preload", allows_streaming => 'logical');
        $node->safe_psql('postgres',
            q{CREATE EXTENSION idem; SELECT idem_create_table('outbox', mode => 'lease', generations => 4)});
    }
    my ($publisher, $subscriber) = @node{ 'publisher', 'subscriber' };
    my $publish = sub { $publisher->safe_psql('postgres', $_) foreach @_; };
    my $subscribed = sub { return $subscriber->safe_psql('postgres', join(';', @_)); };

    # A session of the subscriber's which looks at its table all the time.
    my $client = $subscriber->background_psql('postgres');
    my $deliver = sub {
        return join ' ',
          map { $client->query_safe("SELECT concat(outcome, attempt) FROM idem_acquire('outbox', 'send', '$_')") } @_;
    };
    is($deliver->('early'), 'acquired1', "$how: subscriber works");
    $subscribed->(q{CALL idem_rotate('outbox')});
    is($deliver->('early'), 'busy1', "$how: subscriber's filter is built") if $preload;

    # Generations 0 to 3 of the publisher, in which events settle, wait, move, and come back after they have expired.
    $publish->(
        q{CREATE PUBLICATION events FOR TABLE outbox},
        q{SELECT idem_accept('outbox', 'send', e) FROM unnest(ARRAY['copied', 'again 1', 'again 3']) e},
        q{SELECT idem_acquire('outbox', 'send', e) FROM unnest(ARRAY['runs', 'commits', 'fails', 'heartbeat']) e});
    $subscribed->(q{CREATE SUBSCRIPTION events CONNECTION '} . $publisher->connstr . q{ dbname=postgres' PUBLICATION events});
    $subscriber->wait_for_subscription_sync($publisher, 'events', 'postgres');
    is($deliver->('copied'), 'duplicate1', "$how: rows from before the subscription are known");
    $publish->(
        q{SELECT idem_accept('outbox', 'send', 'slot 0')},
        q{UPDATE outbox SET expires_at = clock_timestamp() WHERE event_id LIKE 'again %'},
        q{CALL idem_rotate('outbox')},
        q{SELECT idem_accept('outbox', 'send', e) FROM unnest(ARRAY['slot 1', 'again 1']) e},
        q{SELECT idem_commit('outbox', 'send', 'commits', attempt => 1)},
        q{CALL idem_rotate('outbox')},
        q{SELECT idem_accept('outbox', 'send', 'slot 2')},
        q{SELECT idem_release('outbox', 'send', 'fails', attempt => 1, error => 'no', retry_after => '0')},
        q{CALL idem_rotate('outbox')},
        q{SELECT idem_accept('outbox', 'send', e) FROM unnest(ARRAY['slot 3', 'again 3']) e},
        q{SELECT idem_extend('outbox', 'send', 'heartbeat', attempt => 1, hot_window => '15 minutes')});
    $publisher->wait_for_catchup('events');

    my %expected = (
        'copied' => 'duplicate1',
        'runs' => 'busy1',
        'commits' => 'duplicate1',
        'heartbeat' => 'busy1',
        'again 1' => 'duplicate2',
        'again 3' => 'duplicate2',
        map { ("slot $_" => 'duplicate1') } 0 .. 3);
    my @events = sort keys %expected;
    my $all_known = sub {
        my ($when) = @_;
        is($deliver->(@events), join(' ', @expected{@events}), "$how: $when");
        return;
    };
    $all_known->('known as soon as they are replicated');
    $subscribed->(q{CALL idem_purge('outbox')});
    $all_known->('known after a purge of the subscriber\'s');

    # The publisher is gone.
    $subscribed->($_) foreach 'ALTER SUBSCRIPTION events DISABLE', 'ALTER SUBSCRIPTION events SET (slot_name = NONE)',
      'DROP SUBSCRIPTION events';
    $publisher->stop('immediate');
    $all_known->('known when the publisher is gone');
    is($deliver->('fails'), 'acquired2', "$how: what had failed is taken up");
    foreach my $turn (1 .. 5)
    {
        # A row that has expired stands in the slot which is current, and one in one that is not.
        $subscribed->(
            q{INSERT INTO outbox (key, state, attempt, first_seen_at, expires_at, failures, slot, handler, event_id)
              SELECT key, 'done', 1, first_seen_at, clock_timestamp(), 0, (slot + } . $turn . q{) % 4, handler, event_id
              FROM outbox WHERE event_id LIKE 'slot %' ON CONFLICT DO NOTHING});
        $all_known->("expired copies in other slots, turn $turn");
        $subscribed->(q{DELETE FROM outbox WHERE expires_at < now()},
            q{UPDATE outbox SET expires_at = clock_timestamp() WHERE event_id = 'filler'});
        $subscribed->(q{CALL idem_rotate('outbox')});
        $deliver->('filler');
        $subscribed->(q{CALL idem_purge('outbox')});
        $all_known->("turn $turn of the subscriber's own");
    }
    lives_ok_commit($client, 'runs', $how);
    is($deliver->('runs', 'runs'), 'duplicate1 duplicate1', "$how: once");
    is($subscribed->(q{SELECT event_id FROM outbox WHERE expires_at > now() GROUP BY key, event_id HAVING count(*) > 1}),
        '', "$how: no event lives in two places");
    $client->quit;
    $subscriber->stop;
}

# The holder of a lease that the publisher has given settles with the subscriber.
sub lives_ok_commit
{
    my ($session, $event, $how) = @_;
    is($session->query_safe("SELECT FROM idem_commit('outbox', 'send', '$event', attempt => 1)"),
        '', "$how: a lease of the publisher's is committed");
    return;
}

done_testing();
