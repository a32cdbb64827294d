# On a hot standby nothing can be claimed, and what is remembered can be looked up; once it is promoted, claims go on
# there exactly as the primary left them.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $primary = start_node("max_prepared_transactions = 10\nautovacuum = off", name => 'primary', allows_streaming => 1);
$primary->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'backup', has_streaming => 1);
$standby->start;

my $on_primary = $primary->background_psql('postgres');
$on_primary->query_safe($_)
  foreach 'CREATE EXTENSION idem',
  q{SELECT idem_create_table('inbox', generations => 3)},
  q{SELECT idem_create_table('outbox', mode => 'lease', generations => 3)},
  q{SELECT idem_accept('inbox', 'book', 'settled', result => '{"cents": 100}')},
  q{SELECT idem_acquire('outbox', 'send', 'claimed')},
  q{SELECT idem_acquire('outbox', 'send', 'run out', hot_window => '1 microsecond')},
  q{SELECT idem_set_policy('outbox', 'call', max_attempts => 1)},
  q{SELECT idem_release('outbox', 'call', 'dead', error => 'no answer')};
$primary->wait_for_catchup($standby);

my $on_standby = $standby->background_psql('postgres', on_error_stop => 0);
$on_standby->query_safe('\set VERBOSITY sqlstate');

my $look_up = q{SELECT slot, state, attempt, result FROM idem_lookup('%s')};
my %looked_up_in = (
    q{inbox', 'book', 'settled} => 'done|1|{"cents": 100}',
    q{outbox', 'send', 'claimed} => 'processing|1|');

sub is_remembered_on_standby
{
    my ($slot, $when) = @_;
    foreach my $event (sort keys %looked_up_in)
    {
        is($on_standby->query_safe(sprintf($look_up, $event)),
            "$slot|$looked_up_in{$event}", "$when: $event can be looked up");
    }
    return;
}

is_remembered_on_standby(0, 'standby');
is($on_standby->query_safe(q{SELECT idem_lookup('inbox', 'book', 'never seen') IS NULL}), 't',
    'standby: unknown event');
is($on_standby->query_safe(q{SELECT key = idem_key('book', 'settled') FROM inbox}),
    't', 'standby: key can be computed');

is($on_standby->query_safe(q{SELECT event_id, error FROM idem_dead_letters('outbox')}),
    'dead|no answer', 'standby: dead letters can be read');
is($on_standby->query_safe(q{SELECT max_attempts FROM idem_policy WHERE handler = 'call'}),
    1, 'standby: policies too');

my %writing_calls = (
    idem_acquire => q{SELECT idem_acquire('inbox', 'book', 'settled')},
    idem_accept => q{SELECT idem_accept('inbox', 'book', 'new')},
    idem_commit => q{SELECT idem_commit('outbox', 'send', 'claimed', attempt => 1)},
    idem_release => q{SELECT idem_release('outbox', 'send', 'claimed', attempt => 1)},
    idem_extend => q{SELECT idem_extend('outbox', 'send', 'claimed', attempt => 1)},
    idem_rotate => q{CALL idem_rotate('inbox')},
    idem_create_table => q{SELECT idem_create_table('another')},
    idem_attach_table => q{SELECT idem_attach_table('inbox')},
    idem_set_policy => q{SELECT idem_set_policy('inbox', 'book', mode => 'lease')},
    idem_receive => q{SELECT idem_receive('inbox', 'book', 'new')},
    idem_due => q{SELECT idem_due('outbox')},
    idem_requeue => q{SELECT idem_requeue('outbox', 'call', 'dead')},
    idem_resolve => q{SELECT idem_resolve('outbox', 'call', 'dead', note => 'by hand')},
    idem_acquire_many => q{SELECT idem_acquire_many('inbox', 'book', ARRAY['new'])});
foreach my $function (sort keys %writing_calls)
{
    $on_standby->query($writing_calls{$function});
    like($on_standby->{stderr}, qr/ERROR:  25006/, "standby: $function is refused");
    $on_standby->{stderr} = '';
}

# The standby's session has the ring cached; it follows the primary's turns and rows that move.
$on_primary->query_safe("CALL idem_rotate('$_')") foreach 'inbox', 'outbox';
$primary->wait_for_catchup($standby);
is_remembered_on_standby(0, 'ring turned');
$on_primary->query_safe(q{SELECT idem_commit('outbox', 'send', 'claimed', attempt => 1)});
$on_primary->query_safe(q{SELECT idem_accept('inbox', 'book', 'in the next generation')});
$primary->wait_for_catchup($standby);
is($on_standby->query_safe(sprintf($look_up, q{outbox', 'send', 'claimed})), '1|done|1|', 'standby: event has moved');
is($on_standby->query_safe(sprintf($look_up, q{inbox', 'book', 'in the next generation})),
    '1|done|1|', 'standby: event of the next generation');

# The primary ends with an open claim, a prepared claim and a prepared settling.
$on_primary->query_safe($_)
  foreach q{SELECT idem_acquire('outbox', 'send', 'settling')},
  'BEGIN', q{SELECT idem_accept('inbox', 'book', 'prepared')}, q{PREPARE TRANSACTION 'claim'},
  'BEGIN', q{SELECT idem_commit('outbox', 'send', 'settling', attempt => 1)}, q{PREPARE TRANSACTION 'settling'},
  'BEGIN', q{SELECT idem_accept('inbox', 'book', 'open')};
$primary->safe_psql('postgres', 'CHECKPOINT');
$primary->wait_for_catchup($standby);
$primary->stop('immediate');
$on_primary->quit;
$standby->promote;

my @expected = (
    [ q{idem_accept('inbox', 'book', 'settled')} => 'duplicate|1|{"cents": 100}' ],
    [ q{idem_accept('inbox', 'book', 'in the next generation')} => 'duplicate|1|' ],
    [ q{idem_accept('inbox', 'book', 'open')} => 'acquired|1|' ],
    [ q{idem_accept('inbox', 'book', 'open')} => 'duplicate|1|' ],
    [ q{idem_acquire('inbox', 'book', 'prepared')} => 'busy||' ],
    [ q{idem_acquire('outbox', 'send', 'claimed')} => 'duplicate|1|' ],
    [ q{idem_acquire('outbox', 'send', 'run out')} => 'acquired|2|' ],
    [ q{idem_acquire('outbox', 'send', 'run out')} => 'busy|2|' ],
    [ q{idem_acquire('outbox', 'send', 'settling')} => 'busy||' ]);

foreach my $expected (@expected)
{
    my ($call, $answer) = @$expected;
    is($on_standby->query_safe("SELECT outcome, attempt, result FROM $call"), $answer, "promoted: $call is $answer");
}
$on_standby->query_safe(q{COMMIT PREPARED 'claim'});
$on_standby->query_safe(q{COMMIT PREPARED 'settling'});
foreach my $call (q{idem_accept('inbox', 'book', 'prepared')}, q{idem_acquire('outbox', 'send', 'settling')})
{
    is($on_standby->query_safe("SELECT outcome FROM $call"),
        'duplicate', "promoted, prepared transaction committed: $call");
}
$on_standby->query_safe(q{CALL idem_rotate('inbox')});
is($on_standby->query_safe(q{SELECT current_generation FROM idem_control WHERE dedup = 'inbox'::regclass}),
    2, 'promoted: ring turns');
$on_standby->quit;

$standby->stop;
done_testing();
