# DROP EXTENSION never takes a dedup table along unasked; and where the extension was dropped and created again,
# sessions that had used the old one go on with the new one.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node();
$node->safe_psql(
    'postgres', q{
    CREATE SCHEMA dedup;
    CREATE SCHEMA another;
    CREATE EXTENSION idem SCHEMA dedup;
    ALTER DATABASE postgres SET search_path = public, dedup, another;
});

sub accept_event
{
    my ($client, $event) = @_;
    return $client->query_safe(
        "SELECT outcome, attempt, result FROM idem_accept('inbox', 'book', '$event', result => '1')");
}

my $dropper = connect_client($node);
my $other = connect_client($node);
$dropper->query_safe(q{SELECT idem_create_table('inbox')});
$dropper->query_safe(q{SELECT idem_create_table('outbox', mode => 'lease')});
is(accept_event($dropper, 'first'), 'acquired|1|', 'new event');
is(accept_event($other, 'first'), 'duplicate|1|1', 'duplicate in another session');

is(sqlstate_of($dropper, 'DROP EXTENSION idem'), '2BP01', 'DROP EXTENSION is refused while there are dedup tables');
is(accept_event($_, 'first'), 'duplicate|1|1', 'refused drop leaves everything') foreach $dropper, $other;

is(sqlstate_of($dropper, "DROP $_"), '2BP01', "$_ cannot be dropped by itself")
  foreach 'TABLE dedup.idem_control', 'TYPE idem_event', 'FUNCTION idem_key';

# In a transaction that is rolled back the session uses a new extension and a new table, and then the old ones again.
$dropper->query_safe($_)
  foreach 'BEGIN', 'SET LOCAL client_min_messages = warning', 'DROP EXTENSION idem CASCADE',
  'CREATE EXTENSION idem SCHEMA another', q{SELECT idem_create_table('inbox')};
is(accept_event($dropper, 'first'), 'acquired|1|', 'table of an extension made anew in the transaction is empty');
is(accept_event($dropper, 'first'), 'duplicate|1|1', 'it works in the transaction');
$dropper->query_safe('ROLLBACK');
is(accept_event($dropper, 'first'), 'duplicate|1|1', 'after the rollback the table has its events');
is(accept_event($dropper, 'second'), 'acquired|1|', 'after the rollback the table takes events');
is(accept_event($other, 'second'), 'duplicate|1|1', 'which other sessions see');

# Whoever has an open claim keeps the extension in place.
$other->query_safe('BEGIN');
is(accept_event($other, 'open'), 'acquired|1|', 'claim in an open transaction');
$dropper->query_safe('SET lock_timeout = 10');
is(sqlstate_of($dropper, 'DROP EXTENSION idem CASCADE'),
    '55P03', 'DROP EXTENSION CASCADE has to wait for an open claim');
$dropper->query_safe('RESET lock_timeout');
$other->query_safe('COMMIT');

# Both have everything cached, a plan with the table in it too.
$_->query_safe(q{PREPARE accept (text) AS SELECT outcome::text FROM idem_accept('inbox', 'book', $1)})
  foreach $dropper, $other;
is($_->query_safe(q{EXECUTE accept ('second')}), 'duplicate', 'prepared statement') foreach $dropper, $other;

foreach my $schema ('dedup', 'another')
{
    $dropper->query_safe('SET client_min_messages = warning');
    $dropper->query_safe('DROP EXTENSION idem CASCADE');
    is($dropper->query_safe(q{SELECT count(*) FROM pg_class WHERE relname ~ '^(inbox|outbox|idem)'}),
        0, 'CASCADE drops the dedup tables, and nothing of idem stays');
    foreach my $session ($dropper, $other)
    {
        is(sqlstate_of($session, q{SELECT idem_accept('inbox', 'book', 'first')}), '42883', 'function is gone');
        isnt(sqlstate_of($session, q{EXECUTE accept ('second')}), undef, 'prepared statement fails');
    }

    $dropper->query_safe("CREATE EXTENSION idem SCHEMA $schema");
    is(sqlstate_of($other, q{SELECT idem_accept('inbox', 'book', 'first')}), '42P01', 'table is gone');
    $dropper->query_safe(q{SELECT idem_create_table('inbox')});
    $dropper->query_safe(q{SELECT idem_create_table('outbox', mode => 'lease')});

    is(accept_event($other, 'first'), 'acquired|1|', "extension made anew in schema $schema: new event");
    is(accept_event($_, 'first'), 'duplicate|1|1', "extension made anew in schema $schema: duplicate")
      foreach $other, $dropper;
    is($_->query_safe(q{SELECT (idem_lookup('inbox', 'book', 'first')).state}),
        'done', "extension made anew in schema $schema: look-up")
      foreach $other, $dropper;
    is($other->query_safe(q{SELECT outcome, attempt FROM idem_acquire('outbox', 'send', 'first')}),
        'acquired|1', "extension made anew in schema $schema: lease");
    is($dropper->query_safe(q{SELECT outcome, attempt FROM idem_acquire('outbox', 'send', 'first')}),
        'busy|1', "extension made anew in schema $schema: lease runs");
    $dropper->query_safe(q{CALL idem_rotate('inbox')});
    is(accept_event($other, 'first'),
        'duplicate|1|1', "extension made anew in schema $schema: duplicate after rotation");
    is($_->query_safe(q{EXECUTE accept ('first')}),
        'duplicate', "extension made anew in schema $schema: prepared statement")
      foreach $other, $dropper;
}

$dropper->query_safe('ALTER SCHEMA another RENAME TO renamed');
$_->query_safe('SET search_path = public, renamed') foreach $dropper, $other;
is(accept_event($other, 'first'), 'duplicate|1|1', 'schema of the extension renamed: duplicate');
is(accept_event($other, 'second'), 'acquired|1|', 'schema of the extension renamed: new event');
$_->quit foreach $dropper, $other;

$node->stop;
done_testing();
