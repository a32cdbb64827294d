# Whatever makes the store unavailable, a handler whose policy is `reject` gets an error that says so, and one whose policy
# is `allow` does its work unprotected: the business write beside the claim commits, a WARNING names the event, and the
# claim is counted where no ROLLBACK undoes it. Locks, standbys and files here; the rest is in test/sql/not_available.sql.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;
use File::Copy qw(copy);

# Whether a look-up goes into a partition is to depend on nothing but the partition: without filters.
my $node = start_node(
    q{
    shared_preload_libraries = 'idem'
    idem.purge = off
    idem.filter_memory = 0
    max_prepared_transactions = 10
    autovacuum = off
}, allows_streaming => 1);
$node->safe_psql(
    'postgres', q{
    CREATE EXTENSION idem;
    CREATE TABLE ledger (id serial, what text);
    CREATE FUNCTION book(payload jsonb) RETURNS jsonb LANGUAGE sql AS
        $$INSERT INTO ledger (what) VALUES ('once'); SELECT '1'::jsonb$$;
    SELECT idem_create_table('inbox', generations => 3);
    SELECT idem_set_policy('inbox', 'lenient', on_unavailable => 'allow');
    SELECT idem_accept('inbox', handler, 'remembered') FROM unnest('{strict,lenient}'::text[]) AS handler;
    CALL idem_rotate('inbox');
});

# The calls that claim, each on an event of its own.
my @claims = (
    q{idem_acquire('inbox', '%s', 'acquire, %s')},
    q{idem_accept('inbox', '%s', 'accept, %s')},
    q{idem_once('inbox', '%s', 'once, %s', 'book(jsonb)')},
    q{idem_acquire_many('inbox', '%s', ARRAY['many, %s', 'more', 'more'])});

# Runs statements in a new session that waits for no lock, whatever errors they raise; returns stdout and stderr.
sub run
{
    my ($on, $statements, $verbosity) = @_;
    local $ENV{PGOPTIONS} = '-c lock_timeout=10ms';
    my ($stdout, $stderr);
    $on->psql('postgres', $statements, stdout => \$stdout, stderr => \$stderr, on_error_stop => 0,
        extra_params => [ '--set', 'VERBOSITY=' . ($verbosity // 'default') ]);
    return ($stdout, $stderr);
}

sub bypassed
{
    my ($on) = @_;
    return $on->safe_psql('postgres', q{SELECT idem_bypassed('inbox')});
}

sub is_rejected
{
    my ($on, $why, $sqlstate) = @_;
    my $before = bypassed($on);
    my (undef, $stderr) = run($on, join('', map { sprintf("SELECT $_;\n", 'strict', $why) } @claims), 'sqlstate');
    my @sqlstates = $stderr =~ /ERROR:  (\w+)/g;
    is_deeply(\@sqlstates, [ ($sqlstate) x @claims ], "$why: rejected");
    is(bypassed($on), $before, "$why: what is rejected is not counted");
    return;
}

# Every way to claim and settle, with a business write beside it; the last is rolled back.
sub is_allowed
{
    my ($on, $why, $reason) = @_;
    my $before = bypassed($on);
    my ($acquire, $accept, $once, $many) = map { sprintf($_, 'lenient', $why) } @claims;
    my ($stdout, $stderr) = run(
        $on, qq{
        TRUNCATE ledger;
        BEGIN;
        INSERT INTO ledger (what) VALUES ('acquire');
        SELECT acquired, outcome FROM $acquire;
        SELECT idem_commit('inbox', 'lenient', 'acquire, $why', result => '1');
        COMMIT;
        INSERT INTO ledger (what) SELECT 'accept' FROM $accept WHERE acquired;
        SELECT outcome, result FROM $once;
        BEGIN;
        INSERT INTO ledger (what) VALUES ('many');
        SELECT string_agg(outcome::text, ' ') FROM $many;
        SELECT outcome FROM idem_release_many('inbox', 'lenient', ARRAY['many, $why', 'more']);
        COMMIT;
        BEGIN;
        INSERT INTO ledger (what) VALUES ('unsettled');
        SELECT outcome FROM idem_acquire('inbox', 'lenient', 'unsettled, $why');
        COMMIT;
        BEGIN;
        INSERT INTO ledger (what) VALUES ('rolled back');
        SELECT outcome FROM idem_acquire('inbox', 'lenient', 'rolled back, $why');
        ROLLBACK;
        SELECT string_agg(what, ' ' ORDER BY id) FROM ledger;
    });
    is($stdout, join("\n", 't|bypassed', '', 'bypassed|1', 'bypassed bypassed duplicate', 'backoff', 'backoff', 'bypassed',
            'bypassed', 'acquire accept once many unsettled'),
        "$why: allowed, and the work is done");
    unlike($stderr, qr/ERROR/, "$why: no error");
    my $warning = qr/WARNING:  (?:event "[^"]+"|2 events) of handler "lenient" (?:is|are) not protected against duplicates/;
    my @warnings = $stderr =~ /$warning\nDETAIL:  The store is not available: $reason/g;
    is(scalar @warnings, 6, "$why: warnings") or diag($stderr);
    is(bypassed($on) - $before, 7, "$why: each claim is counted, that of the transaction rolled back, too");
    return;
}

# Afterwards nothing is left of it: claims are stored, those that were bypassed are new.
sub is_available
{
    my ($why) = @_;
    my $before = bypassed($node);
    is( $node->safe_psql(
            'postgres', qq{
            SELECT outcome FROM idem_accept('inbox', 'lenient', 'acquire, $why');
            SELECT outcome FROM idem_accept('inbox', 'lenient', 'acquire, $why');
            SELECT outcome FROM idem_accept('inbox', 'lenient', 'remembered');
            SELECT outcome FROM idem_accept('inbox', 'strict', 'remembered');
        }),
        "acquired\nduplicate\nduplicate\nduplicate",
        "$why: afterwards all is as before");
    is(bypassed($node), $before, "$why: afterwards nothing is bypassed");
    return;
}

is(bypassed($node), 0, 'nothing was bypassed so far');

# Locks that can't be had in time.

my $locker = $node->background_psql('postgres');
# No statement can name the gate, so a table is given its number.
$locker->query_safe($_)
  foreach 'CREATE TABLE the_gate ()', q{UPDATE pg_class SET oid = idem_gate_relation() WHERE oid = 'the_gate'::regclass};
foreach my $relation ('the_gate', 'inbox_g1', 'inbox_g0', 'ONLY inbox')
{
    $locker->query_safe('BEGIN');
    $locker->query_safe("LOCK TABLE $relation");
    is_rejected($node, "$relation locked", '55P03');
    is_allowed($node, "$relation locked", 'canceling statement due to lock timeout');
    $locker->query_safe('ROLLBACK');
    is_available("$relation locked");
}

# A prepared transaction takes its bypassed claim with it, and nobody else may settle it.

$locker->query_safe($_) foreach 'BEGIN', 'LOCK TABLE the_gate';
my ($stdout, $stderr) = run($node, q{
    TRUNCATE ledger;
    BEGIN;
    INSERT INTO ledger (what) VALUES ('prepared');
    SELECT outcome FROM idem_acquire('inbox', 'lenient', 'prepared');
    PREPARE TRANSACTION 'bypassed';
    BEGIN;
    INSERT INTO ledger (what) VALUES ('unsettled');
    SELECT outcome FROM idem_acquire('inbox', 'lenient', 'unsettled');
    COMMIT;
});
$locker->query_safe('ROLLBACK');
is($stdout, "bypassed\nbypassed", 'bypassed claims, one prepared');
unlike($stderr, qr/ERROR/, 'an unsettled claim that was bypassed may be prepared, and committed');
($stdout, $stderr) = run($node, q{
    SELECT idem_commit('inbox', 'lenient', 'prepared');
    SELECT idem_commit('inbox', 'lenient', 'unsettled', attempt => 1);
    COMMIT PREPARED 'bypassed';
    SELECT idem_commit('inbox', 'lenient', 'prepared', attempt => 1);
}, 'sqlstate');
is_deeply([ $stderr =~ /ERROR:  (\w+)/g ], [ ('ID002') x 3 ], 'no other transaction can settle them');
is($node->safe_psql('postgres', q{SELECT string_agg(what, ' ' ORDER BY id) FROM ledger}),
    'prepared unsettled', 'their work is done');

# A standby, and a primary whose sessions are read-only.

$node->safe_psql('postgres', 'TRUNCATE ledger');
$node->backup('backup');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'backup', has_streaming => 1);
$standby->start;
my $on_primary = bypassed($node);
my %read_only = (standby => [ $standby, 'the server is a standby' ],
    'read-only transaction' => [ $node, 'the transaction is read-only' ]);
$node->append_conf('postgresql.conf', 'default_transaction_read_only = on');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('default_transaction_read_only') = 'on'}) or die;
foreach my $why (sort keys %read_only)
{
    my ($on, $reason) = @{ $read_only{$why} };
    is_rejected($on, $why, '25006');
    my $before = bypassed($on);
    ($stdout, $stderr) = run($on, q{
        BEGIN;
        SELECT outcome FROM idem_acquire('inbox', 'lenient', 'read-only');
        SELECT idem_commit('inbox', 'lenient', 'read-only');
        SELECT outcome FROM idem_accept('inbox', 'lenient', 'read-only');
        SELECT string_agg(outcome::text, ' ') FROM idem_acquire_many('inbox', 'lenient', '{m,n}');
        SELECT idem_commit_many('inbox', 'lenient', '{m,n}');
        COMMIT;
    });
    is($stdout, "bypassed\n\nbypassed\nbypassed bypassed\n", "$why: allowed");
    unlike($stderr, qr/ERROR/, "$why: no error");
    is(scalar(() = $stderr =~ /is not available: \Q$reason\E\./g), 3, "$why: warnings");
    is(bypassed($on) - $before, 4, "$why: counted");
    (undef, $stderr) = run($on, q{
        SELECT idem_commit('inbox', 'lenient', 'read-only', attempt => 1);
        SELECT idem_once('inbox', 'lenient', 'once', 'book(jsonb)');
    }, 'sqlstate');
    is_deeply([ $stderr =~ /ERROR:  (\w+)/g ], [ ('25006') x 2 ], "$why: what writes itself is an error");
}
is(bypassed($node) - $on_primary, 5, 'each server counts its own');
is($node->safe_psql('postgres', 'SELECT bypassed FROM idem_tables'), bypassed($node), 'idem_tables shows the count');
$standby->stop;
$node->append_conf('postgresql.conf', 'default_transaction_read_only = off');
$node->reload;
$node->poll_query_until('postgres', q{SELECT current_setting('default_transaction_read_only') = 'off'}) or die;
is_available('read-only transaction');
$locker->quit;

# Files. The current generation is empty, so that a full disk is met by its first event.

$node->safe_psql('postgres', "CALL idem_rotate('inbox')");
my %file = map { $_ => $node->data_dir . '/' . $node->safe_psql('postgres', "SELECT pg_relation_filepath('$_')") }
  qw(inbox_g0 inbox_g0_pkey inbox_g2);

# Overwrites bytes of a file.
sub overwrite
{
    my ($file, $offset, $bytes) = @_;
    open(my $handle, '+<', $file) or die "could not open $file: $!";
    binmode($handle);
    seek($handle, $offset, 0) or die "could not seek in $file: $!";
    print $handle $bytes;
    close($handle) or die "could not write $file: $!";
    return;
}

my $saved = $node->basedir . '/saved';
my @faults = (
    {   why => 'disk full',
        relation => 'inbox_g2',
        break => sub { unlink($_[0]) && symlink('/dev/full', $_[0]) or die },
        sqlstate => '53100',
        reason => 'could not extend file "[^"]*": No space left on device' },
    {   why => 'file missing',
        relation => 'inbox_g0_pkey',
        break => sub { unlink($_[0]) or die },
        sqlstate => '58P01',
        reason => 'could not open file "[^"]*": No such file or directory' },
    {   why => 'file that may not be opened',
        relation => 'inbox_g0_pkey',
        break => sub { chmod(0, $_[0]) or die },
        sqlstate => '42501',
        reason => 'could not open file "[^"]*": Permission denied' },
    {   why => 'error of the system that has no SQLSTATE',
        relation => 'inbox_g0_pkey',
        break => sub { unlink($_[0]) && symlink($_[0], $_[0]) or die },
        sqlstate => 'XX000',
        reason => 'could not open file "[^"]*": Too many levels of symbolic links' },
    {   why => 'read error',
        relation => 'inbox_g0_pkey',
        break => sub { truncate($_[0], 8192) or die },
        sqlstate => 'XX001',
        reason => 'could not read blocks? 1(?:\.\.1)? in file "[^"]*": read only 0 of 8192 bytes' },
    {   why => 'corrupted index',
        relation => 'inbox_g0_pkey',
        break => sub { overwrite($_[0], 8192, "\0" x 8192) },
        sqlstate => 'XX002',
        reason => 'index "inbox_g0_pkey" contains unexpected zero page at block 1' },
    {   why => 'index that is none',
        relation => 'inbox_g0_pkey',
        break => sub { overwrite($_[0], 0, slurp_file($file{inbox_g0})) },
        sqlstate => 'XX002',
        reason => 'index "inbox_g0_pkey" contains corrupted page at block 0' },
    {   why => 'invalid page',
        relation => 'inbox_g0_pkey',
        break => sub { overwrite($_[0], 8192, 'x' x 8192) },
        sqlstate => 'XX001',
        reason => 'invalid page in block 1 of relation' });

foreach my $fault (@faults)
{
    my $why = $fault->{why};
    my $file = $file{ $fault->{relation} };
    $node->stop;
    copy($file, $saved) or die "could not copy $file: $!";
    $fault->{break}->($file);
    $node->start;
    is_rejected($node, $why, $fault->{sqlstate});
    is_allowed($node, $why, $fault->{reason});
    $node->stop;
    unlink($file);
    rename($saved, $file) or die "could not restore $file: $!";
    $node->start;
    is_available($why);
    # The next fault meets an empty partition, too.
    $node->safe_psql('postgres', q{TRUNCATE inbox_g2});
    $file{inbox_g2} = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('inbox_g2')});
}

# An index that is met after the row was written: nothing of it is left, neither for others nor for later.
$node->safe_psql('postgres', q{
    SELECT idem_set_policy('inbox', handler, mode => 'lease') FROM unnest('{strict,lenient}'::text[]) AS handler});
my $due = $node->safe_psql('postgres', q{
    SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = 'inbox_g2'::regclass AND NOT indisprimary ORDER BY indexrelid LIMIT 1});
$node->stop;
overwrite($node->data_dir . "/$due", 0, "\0" x 8192);
$node->start;
($stdout, $stderr) = run($node, q{
    SELECT outcome FROM idem_acquire('inbox', 'strict', 'e');
    SELECT outcome FROM idem_acquire('inbox', 'lenient', 'e');
    SELECT string_agg(outcome::text, ' ') FROM idem_acquire_many('inbox', 'lenient', '{e,f}');
    SELECT outcome FROM idem_accept('inbox', 'lenient', 'settled at once');
});
like($stderr, qr/ERROR:  index "[^"]+" contains unexpected zero page at block 0/, 'corrupted index of due events: rejected');
is($stdout, "bypassed\nbypassed bypassed\nacquired", 'corrupted index of due events: allowed where it is needed');
$node->safe_psql('postgres', 'REINDEX TABLE inbox_g2');
is($node->safe_psql('postgres', q{
    SELECT event_id FROM inbox_g2;
    SELECT string_agg(outcome::text, ' ') FROM idem_acquire_many('inbox', 'lenient', '{e,f}');
}), "settled at once\nacquired acquired", 'corrupted index of due events: nothing is left of what failed');

# A damaged row is met by its own event only. What can be repaired beside claims is.
$node->stop;
overwrite($file{inbox_g0}, 0, 'x' x 8192);
$node->start;
is( (run($node, q{
        SELECT outcome FROM idem_accept('inbox', 'lenient', 'remembered');
        SELECT outcome FROM idem_accept('inbox', 'lenient', 'beside it');
    }))[0],
    "bypassed\nacquired",
    'damaged row: bypassed, other events are not');

# Counts of tables that were dropped make room for others.
my ($dropped) = run($node, q{
    SELECT idem_create_table('dropped') \g /dev/null
    SELECT idem_set_policy('dropped', on_unavailable => 'allow') \g /dev/null
    ALTER TABLE dropped_g0 ENABLE ROW LEVEL SECURITY;
    SELECT outcome FROM idem_acquire('dropped', 'book', 'evt_1') \g /dev/null
    SELECT 'dropped'::regclass::oid, idem_bypassed('dropped');
    DROP TABLE dropped;
});
like($dropped, qr/^\d+\|1$/, 'a table whose claim is bypassed');
($dropped) = split /\|/, $dropped;
$node->safe_psql('postgres', 'CALL idem_purge()');
is($node->safe_psql('postgres', "SELECT idem_bypassed(CAST($dropped AS regclass))"), 0, 'dropped: its count is freed');

# Without shared memory there is nothing to count in.
$node->append_conf('postgresql.conf', q{shared_preload_libraries = ''});
$node->restart;
($stdout) = run($node, q{
    SELECT outcome FROM idem_accept('inbox', 'lenient', 'remembered');
    SELECT bypassed IS NULL, idem_bypassed('inbox') IS NULL FROM idem_tables;
});
is($stdout, "bypassed\nt|t", 'not preloaded: allowed, not counted');

$node->stop;
done_testing();
