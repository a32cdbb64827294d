# Whatever somebody else writes to a dedup table counts from its commit on: into whichever slot, by whichever statement,
# where sessions have looked at the table before, and where a filter has told them that nothing of the kind is there.
# The trigger idem_touch tells of such writes; where it is switched off, no filter is trusted, and a purge mends it.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node(
    q{
    shared_preload_libraries = 'idem'
    max_prepared_transactions = 10
    idem.purge = off
    autovacuum = off
});

my $client;      # a session that has seen the table before
my $preloaded;
my $number = 0;

# A row as idem would have written it, for a statement that begins with INSERT INTO … or the like.
sub row
{
    my ($event, $slot, $expires) = @_;
    $expires //= q{now() + interval '1 day'};
    return qq{SELECT (jsonb_populate_record(NULL::idem_event, jsonb_build_object('key', idem_key('book', '$event'),
        'state', 'done', 'attempt', 1, 'first_seen_at', now() - interval '1 day', 'expires_at', $expires,
        'failures', 0, 'slot', $slot, 'handler', 'book', 'event_id', '$event'))).*};
}

sub deliver
{
    my ($event) = @_;
    return $client->query_safe("SELECT answer('inbox', 'book', '$event')");
}

sub dba
{
    return $node->safe_psql('postgres', join(";\n", @_));
}

sub filtered_slots
{
    return dba(q{SELECT (idem_filter('inbox')).slots});
}

# Slot 0 is sealed, slot 1 is current, 2 and 3 are not opened yet; the client knows.
sub fresh_table
{
    dba('DROP TABLE IF EXISTS inbox', q{SELECT idem_create_table('inbox', generations => 4)},
        q{SELECT FROM generate_series(1, 50) i, idem_accept('inbox', 'book', 'sealed ' || i)});
    dba(q{CALL idem_rotate('inbox')});
    is(deliver('sealed 1'), 'duplicate', 'table is there');
    deliver('current');
    is(filtered_slots(), $preloaded ? '{0}' : '', 'what is sealed is filtered, if idem is preloaded');
    return;
}

# Into a sealed slot, the current one, and one that was not opened yet.
my @slots = (0, 1, 2);

my $data = PostgreSQL::Test::Utils::tempdir . '/data';

# By whom and how; each writes the event to the slot.
my %ways = (
    'INSERT' => sub { my ($event, $slot) = @_; dba('INSERT INTO inbox ' . row($event, $slot)); },
    'INSERT into the partition' =>
      sub { my ($event, $slot) = @_; dba("INSERT INTO inbox_g$slot " . row($event, $slot)); },
    'COPY' => sub {
        my ($event, $slot) = @_;
        dba("COPY (" . row($event, $slot) . ") TO '$data'", "COPY inbox FROM '$data'");
    },
    'UPDATE of another event' => sub {
        my ($event, $slot) = @_;
        dba('INSERT INTO inbox ' . row("before $event", $slot));
        dba(q{CALL idem_purge('inbox')}) if $slot == 0;
        is(deliver("before $event"), 'duplicate', "before UPDATE in slot $slot");
        dba("UPDATE inbox SET event_id = '$event', key = idem_key('book', '$event') WHERE event_id = 'before $event'");
    },
    'UPDATE from another slot' => sub {
        my ($event, $slot) = @_;
        my $other = $slot == 1 ? 0 : 1;
        dba('INSERT INTO inbox ' . row($event, $other));
        dba("UPDATE inbox SET slot = $slot WHERE event_id = '$event'");
    },
    'UPDATE of an expired one' => sub {
        my ($event, $slot) = @_;
        dba('INSERT INTO inbox ' . row($event, $slot, 'now()'));
        dba(q{CALL idem_purge('inbox')}) if $slot == 0;
        dba("UPDATE inbox SET expires_at = now() + interval '1 day' WHERE event_id = '$event'");
    },
    'INSERT ON CONFLICT' => sub {
        my ($event, $slot) = @_;
        dba("INSERT INTO inbox_g$slot " . row($event, $slot) . ' ON CONFLICT (key) DO NOTHING');
    },
    'INSERT after a savepoint that was rolled back' => sub {
        my ($event, $slot) = @_;
        dba('BEGIN', 'SAVEPOINT s', 'INSERT INTO inbox ' . row("not $event", $slot), 'ROLLBACK TO s',
            'INSERT INTO inbox ' . row($event, $slot), 'COMMIT');
        is(deliver("not $event"), 'acquired', "rolled back to savepoint, slot $slot");
    },
    'INSERT, beside a filter that is built, after a savepoint that was rolled back' => sub {
        my ($event, $slot) = @_;
        my $writer = $node->background_psql('postgres');
        $writer->query_safe($_) foreach 'BEGIN', 'SAVEPOINT s', 'INSERT INTO inbox ' . row("not $event", $slot),
          'ROLLBACK TO s';
        dba(q{CALL idem_purge('inbox')});
        $writer->query_safe('INSERT INTO inbox ' . row($event, $slot));
        $writer->query_safe('COMMIT');
        $writer->quit;
        is(deliver("not $event"), 'acquired', "rolled back to savepoint, slot $slot");
    },
    'two INSERTs, a filter is built between them' => sub {
        my ($event, $slot) = @_;
        my $writer = $node->background_psql('postgres');
        $writer->query_safe($_) foreach 'BEGIN', 'INSERT INTO inbox ' . row("first $event", $slot);
        dba(q{CALL idem_purge('inbox')});
        $writer->query_safe('INSERT INTO inbox ' . row($event, $slot));
        $writer->query_safe('COMMIT');
        $writer->quit;
        is(deliver("first $event"), 'duplicate', "first of two, slot $slot");
    },
    'prepared transaction' => sub {
        my ($event, $slot) = @_;
        dba('BEGIN', 'INSERT INTO inbox ' . row($event, $slot), q{PREPARE TRANSACTION 'p'});
        dba(q{CALL idem_purge('inbox')});
        is(deliver($event), 'busy', "prepared, slot $slot") if $slot == 0;
        dba(q{COMMIT PREPARED 'p'});
    },
    'session_replication_role = replica' => sub {
        my ($event, $slot) = @_;
        dba('SET session_replication_role = replica', 'INSERT INTO inbox ' . row($event, $slot));
    },
    'without the trigger' => sub {
        my ($event, $slot) = @_;
        dba("ALTER TABLE inbox_g$slot DISABLE TRIGGER ALL");
        dba('INSERT INTO inbox ' . row($event, $slot));
    },
    'without the trigger, which is switched on as it was not' => sub {
        my ($event, $slot) = @_;
        dba("ALTER TABLE inbox_g$slot DISABLE TRIGGER ALL",
            "INSERT INTO inbox " . row($event, $slot),
            "ALTER TABLE inbox_g$slot ENABLE TRIGGER ALL");
    },
    'without the trigger, which is switched on as it was when a session has noticed' => sub {
        my ($event, $slot) = @_;
        dba("ALTER TABLE inbox_g$slot DISABLE TRIGGER ALL");
        dba('INSERT INTO inbox ' . row($event, $slot));
        deliver('current');
        dba("ALTER TABLE inbox_g$slot ENABLE ALWAYS TRIGGER idem_touch");
    },
    'the trigger has been dropped' => sub {
        my ($event, $slot) = @_;
        dba("DROP TRIGGER idem_touch ON inbox_g$slot");
        dba('INSERT INTO inbox ' . row($event, $slot));
    },
    'another partition in its place' => sub {
        my ($event, $slot) = @_;
        dba("ALTER TABLE inbox DETACH PARTITION inbox_g$slot",
            "CREATE TABLE other (LIKE inbox_g$slot INCLUDING ALL)",
            "INSERT INTO other SELECT * FROM inbox_g$slot",
            "INSERT INTO other " . row($event, $slot),
            "DROP TABLE inbox_g$slot",
            "ALTER TABLE other RENAME TO inbox_g$slot",
            "CREATE TRIGGER idem_touch BEFORE INSERT OR UPDATE ON inbox_g$slot FOR EACH ROW EXECUTE FUNCTION idem_touch()",
            "ALTER TABLE inbox_g$slot ENABLE ALWAYS TRIGGER idem_touch",
            "ALTER TABLE inbox ATTACH PARTITION inbox_g$slot FOR VALUES IN ($slot)");
    });

sub each_way
{
    foreach my $way (sort keys %ways)
    {
        foreach my $slot (@slots)
        {
            my $what = "$way, slot $slot";
            my $event = 'event ' . ++$number;
            fresh_table();
            $ways{$way}->($event, $slot);
            is(deliver($event), 'duplicate', "$what: known at once");
            dba(q{CALL idem_purge('inbox')});
            is(deliver($event), 'duplicate', "$what: known after a purge");
            is( dba(q{SELECT count(*) FROM pg_trigger WHERE tgfoid = 'idem_touch'::regproc AND tgenabled <> 'A'
                      UNION ALL SELECT count(*) FROM pg_trigger
                      WHERE tgfoid = 'idem_touch'::regproc AND tgrelid::regclass::text LIKE 'inbox_g_'}),
                "0\n4", "$what: each partition tells of others' writes again");
            dba(q{CALL idem_rotate('inbox')});
            is(deliver($event), 'duplicate', "$what: known after a turn");
            is(deliver('sealed 2') . deliver('current'), 'duplicateduplicate', "$what: the others too");
            next unless $preloaded;
            is(dba(q{SELECT count(*) FROM idem_generations WHERE NOT filter AND generation <>
                     (SELECT current_generation FROM idem_tables WHERE dedup = 'inbox'::regclass)}),
                0, "$what: all that is sealed is filtered");
        }
    }
    return;
}

# A key may stand in two slots, where one of them has expired: the live one decides, whatever the slots.
sub each_pair
{
    fresh_table();
    my @pairs = map { my $expired = $_; map { [ $expired, $_ ] } grep { $_ != $expired } 0 .. 3 } 0 .. 3;
    dba((map { 'INSERT INTO inbox ' . row("pair $_->[0] $_->[1]", $_->[0], 'now()') } @pairs),
        (map { 'INSERT INTO inbox ' . row("pair $_->[0] $_->[1]", $_->[1]) } @pairs),
        (map { 'INSERT INTO inbox ' . row("gone $_->[0] $_->[1]", $_->[0], 'now()') } @pairs),
        (map { 'INSERT INTO inbox ' . row("gone $_->[0] $_->[1]", $_->[1], 'now()') } @pairs));
    my $all = sub {
        my ($kind) = @_;
        return join ' ', map { deliver("$kind $_->[0] $_->[1]") } @pairs;
    };
    my $duplicates = join ' ', ('duplicate') x @pairs;
    is($all->('pair'), $duplicates, 'one of two has expired: duplicate');
    is($all->('gone'), join(' ', ('acquired') x @pairs), 'both have: acquired');
    is($all->('gone'), $duplicates, 'once');
    dba(q{CALL idem_purge('inbox')});
    is($all->('pair'), $duplicates, 'one of two has expired, after a purge: duplicate');
    is($all->('gone'), $duplicates, 'claimed where both had, after a purge: duplicate');
    is(dba(q{SELECT count(*) FROM idem_generations WHERE dedup = 'inbox'::regclass}), 4, 'all slots are in the ring');
    dba(q{UPDATE inbox SET expires_at = now() WHERE slot = 2});
    dba(q{CALL idem_rotate('inbox')});
    is(dba('SELECT count(*) FROM inbox_g2'), 0, 'a slot that somebody else has filled is emptied, once all has expired');
    is($all->('gone'), $duplicates, 'the others are known');
    return;
}

# The table goes, or a partition of it, in the transaction that has written to it.
sub dropped
{
    fresh_table();
    my ($result, undef, $stderr) =
      $node->psql('postgres', 'BEGIN; INSERT INTO inbox ' . row('lost', 0) . '; DROP TABLE inbox; COMMIT');
    is("$result $stderr", '0 ', 'written to and dropped');
    ($result, undef, $stderr) = $node->psql(
        'postgres', q{BEGIN; SAVEPOINT s; SELECT idem_create_table('other'); INSERT INTO other } . row('lost', 0)
          . '; ROLLBACK TO s; COMMIT', on_error_stop => 1);
    is("$result $stderr", '0 ', 'made, written to and rolled back to a savepoint');
    fresh_table();
    ($result, undef, $stderr) = $node->psql('postgres',
        'BEGIN; INSERT INTO inbox ' . row('taken away', 0) . '; ALTER TABLE inbox DETACH PARTITION inbox_g0; COMMIT');
    is("$result $stderr", '0 ', 'written to and detached');
    dba('ALTER TABLE inbox ATTACH PARTITION inbox_g0 FOR VALUES IN (0)');
    is(deliver('taken away'), 'duplicate', 'attached again: known');
    return;
}

# Rows of a backup come to a table in use.
sub restored
{
    my (@options) = @_;
    my $how = "pg_restore --data-only @options";
    fresh_table();
    dba('CREATE DATABASE copy');
    $node->safe_psql('copy', q{CREATE EXTENSION idem; SELECT idem_create_table('inbox', generations => 4)});
    $node->safe_psql('copy', "SELECT FROM idem_accept('inbox', 'book', 'restored $_'); CALL idem_rotate('inbox')")
      foreach 0 .. 2;
    $node->safe_psql('copy', q{SELECT FROM idem_accept('inbox', 'book', 'restored 3')});
    $node->command_ok([ 'pg_dump', '--format=custom', '--table=inbox*', "--file=$data", $node->connstr('copy') ],
        "$how: dump");
    $node->command_ok([ 'pg_restore', '--data-only', @options, '--dbname', $node->connstr('postgres'), $data ], $how);
    my $all = sub { return join ' ', map { deliver("restored $_") } 0 .. 3 };
    is($all->(), 'duplicate duplicate duplicate duplicate', "$how: known at once");
    dba(q{CALL idem_purge('inbox')});
    is($all->(), 'duplicate duplicate duplicate duplicate', "$how: known after a purge");
    is(dba(q{SELECT string_agg(tgenabled::text, '' ORDER BY tgrelid) FROM pg_trigger WHERE tgname = 'idem_touch'}),
        'AAAA', "$how: each partition tells of others' writes");
    is(deliver('sealed 3') . deliver('current'), 'duplicateduplicate', "$how: what was there is known");
    dba('DROP DATABASE copy');
    return;
}

foreach (1, 0)
{
    $preloaded = $_;
    note($preloaded ? 'preloaded' : 'not preloaded');
    if (!$preloaded)
    {
        $node->append_conf('postgresql.conf', q{shared_preload_libraries = ''});
        $node->restart;
    }
    dba('CREATE EXTENSION IF NOT EXISTS idem', answering(), 'DROP TABLE IF EXISTS inbox');
    $client = $node->background_psql('postgres');
    each_way();
    each_pair();
    dropped();
    restored();
    restored('--disable-triggers');
    restored('--single-transaction');
    $client->quit;
}

$node->stop;
done_testing();
