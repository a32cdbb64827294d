# What keeps a table from being purged is passed by, said once, and shown with the name of who is in the way, also while
# he has locked all there is to lock; and nothing is lost meanwhile. By what a census says alone no live event is removed,
# even if idem.verify_purge is off.

use FindBin;
use lib "$FindBin::RealBin/lib";
use IdemTest;

my $node = start_node("max_prepared_transactions = 10\nidem.purge = off\nautovacuum = off");
$node->safe_psql('postgres', 'CREATE EXTENSION idem; CREATE ROLE anybody LOGIN');

sub sql
{
    return $node->safe_psql('postgres', join(";\n", @_));
}

# What somebody who may do nothing sees, without waiting.
sub sees
{
    my ($columns, $table) = @_;
    return $node->safe_psql('postgres',
        "SET lock_timeout = '10s'; SELECT $columns FROM idem_purge_status WHERE dedup = '$table'::regclass",
        extra_params => [ '-U', 'anybody' ]);
}

# What is said by a pass over all tables, or one.
sub said
{
    my ($table) = @_;
    my ($result, undef, $stderr) = $node->psql('postgres', 'CALL idem_purge(' . ($table ? "'$table'" : '') . ')');
    is($result, 0, 'a pass comes to its end');
    return $stderr;
}

sub pid
{
    my ($session) = @_;
    return $session->query_safe('SELECT pg_backend_pid()');
}

sub is_due
{
    my ($table) = @_;
    return sql("UPDATE idem_generation SET opened_at = opened_at - interval '1 year' WHERE dedup = '$table'::regclass");
}

my $ring = q{SELECT oldest_generation, current_generation FROM idem_control WHERE dedup = 'inbox'::regclass};
my $full = qr/^psql:.*WARNING:  ring of dedup table "inbox" could not turn/;

sql(q{SELECT idem_create_table('inbox', generations => 3), idem_create_table('other', generations => 3)});
my $holder = $node->background_psql('postgres');

note('a full ring');
foreach (0 .. 1)
{
    sql("SELECT FROM idem_accept('inbox', 'book', 'g$_')");
    is_due('inbox');
    is(said(), '', 'the ring turns without a word');
}
sql(q{SELECT FROM idem_accept('inbox', 'book', 'g2')});
is_due('inbox');
is(sees('full_since', 'inbox'), '', 'it is not known to be full before it has to turn');
like(said(), $full, 'a full ring is told');
is(said(), '', 'once');
is(sees('full_since IS NOT NULL, in_the_way, droppable_at > now()', 'inbox'),
    't||t', 'and shown: nobody is in the way, its events live');
is(sql($ring), '0|2', 'it has not turned');
sql(q{SELECT FROM idem_accept('inbox', 'book', 'g2 too')});
is(sql(q{SELECT slot FROM inbox WHERE event_id = 'g2 too'}), 2, 'new events go on into the current slot');
is(sql(q{SELECT string_agg(outcome::text, ' ') FROM unnest(ARRAY['g0', 'g1', 'g2', 'g2 too']) e,
         idem_accept('inbox', 'book', e)}), 'duplicate duplicate duplicate duplicate', 'nothing is lost');

note('whoever may be writing to what has expired');
sql(q{UPDATE inbox SET expires_at = now() WHERE event_id = 'g0'},
    q{UPDATE idem_generation SET newest_expiry = now() WHERE generation = 0});
$holder->query_safe('BEGIN');
$holder->query_safe('LOCK TABLE inbox_g0 IN ROW EXCLUSIVE MODE');
is(said(), '', 'a writer: nothing new is told');
is(sees('in_the_way', 'inbox'), 'RowExclusiveLock of process ' . pid($holder), 'a writer: who it is');
is(sql($ring), '0|2', 'a writer: the ring stays');
$holder->query_safe(q{PREPARE TRANSACTION 'left behind'});
said();
is(sees('in_the_way', 'inbox'), 'RowExclusiveLock of prepared transaction "left behind"', 'a prepared transaction: which');
$node->stop('immediate');
$node->start;
$holder->quit;
said();
is(sees('in_the_way', 'inbox'), 'RowExclusiveLock of prepared transaction "left behind"', 'the same after a crash');
is(sql($ring), '0|2', 'the ring stays');
sql(q{ROLLBACK PREPARED 'left behind'});
is(sees('in_the_way', 'inbox'), '', 'rolled back: nobody');

note('whoever reads what is to be emptied');
$holder = $node->background_psql('postgres');
$holder->query_safe($_) foreach 'BEGIN', 'SELECT FROM inbox_g0';
like(said('inbox'), qr/^$/, 'the ring was full before: nothing new');
is(sql($ring), '1|2', 'it is retired');
is(sees('in_the_way', 'inbox'), 'AccessShareLock of process ' . pid($holder), 'but not emptied, because of whom');
is(sql(q{SELECT outcome FROM idem_accept('inbox', 'book', 'g0')}), 'acquired', 'what has expired there may be claimed');
$holder->query_safe('COMMIT');
is(said(), '', 'the ring turns without a word');
is(sees('full_since, in_the_way', 'inbox'), '|', 'and is not full any more');
is(sql($ring), '1|3', 'it has');
is(sql(q{SELECT outcome FROM idem_accept('inbox', 'book', 'g0')}), 'duplicate', 'and what was claimed is known');

note('whoever has locked the table');
sql(q{SELECT FROM idem_accept('other', 'book', 'e')});
is_due($_) foreach 'inbox', 'other';
foreach my $mode ('ACCESS EXCLUSIVE', 'SHARE UPDATE EXCLUSIVE')
{
    my $before = sql($ring);
    my $name = join('', map { ucfirst lc } split(' ', $mode)) . 'Lock';
    $holder->query_safe($_) foreach 'BEGIN', "LOCK TABLE inbox IN $mode MODE";
    is(said(), '', "$mode: not a word");
    is(sql($ring), $before, "$mode: the table is passed by");
    is(sees('in_the_way', 'inbox'), "$name of process " . pid($holder), "$mode: because of whom");
    is(sql(q{SELECT current_generation FROM idem_control WHERE dedup = 'other'::regclass}),
        1, "$mode: the others are purged");
    $holder->query_safe('COMMIT');
    is(sees('in_the_way', 'inbox'), '', "$mode: let go");
}
$holder->quit;

note('broken tables');
sql(q{ALTER TABLE other_g0 ENABLE ROW LEVEL SECURITY});
like(said(), qr/WARNING:  dedup table "other" is not in order/, 'a failure is told');
is(said(), '', 'once');
like(sql(q{SELECT last_error FROM idem_purge_status WHERE dedup = 'other'::regclass}),
    qr/dedup table "other" is not in order/, 'and shown');
is(sees('last_error, last_error_at IS NOT NULL', 'other'), '|t', 'to others only that there was one');
my (undef, undef, $stderr) = $node->psql('postgres', q{CALL idem_purge('other')});
like($stderr, qr/ERROR:  dedup table "other" is not in order/, 'who asks for this table gets the error');
sql(q{ALTER TABLE other_g0 DISABLE ROW LEVEL SECURITY});
is(said(), '', 'repaired: not a word');
is(sees('last_error, last_error_at', 'other'), '|', 'and shown');

note('a wrong census');
foreach my $preload ('', 'idem')
{
    foreach my $verify ('on', 'off')
    {
        my $what = ($preload ? 'preloaded' : 'not preloaded') . ", verify $verify";
        $node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\nidem.verify_purge = $verify");
        $node->restart;
        sql('DROP TABLE inbox', q{SELECT idem_create_table('inbox', generations => 3)},
            q{SELECT FROM idem_accept('inbox', 'book', 'lives')});
        sql(q{CALL idem_rotate('inbox')});
        my $wrong = q{UPDATE idem_generation SET newest_expiry = now() - interval '1 day' WHERE generation = 0};

        # Where a filter vouches for the scan, and a scan is not wanted, the census is believed: that's what the setting says.
        $node->restart if $preload && $verify eq 'off';
        sql($wrong);
        sql(q{CALL idem_purge('inbox')});
        is(sql(q{SELECT outcome FROM idem_accept('inbox', 'book', 'lives')}), 'duplicate', "$what: the event is known");
        is(sql(q{SELECT newest_expiry > now() FROM idem_generation
                 WHERE dedup = 'inbox'::regclass AND generation = 0}), 't', "$what: the census is right again");

        # When a filter vouches for it, too, and somebody else writes.
        sql(q{UPDATE inbox SET expires_at = expires_at + interval '1 hour' WHERE event_id = 'lives'});
        sql($wrong);
        sql(q{CALL idem_purge('inbox')});
        is(sql(q{SELECT outcome FROM idem_accept('inbox', 'book', 'lives')}),
            'duplicate', "$what: written to by somebody else, the event is known");

        # When all has expired indeed.
        sql(q{UPDATE inbox SET expires_at = now() WHERE event_id = 'lives'});
        sql(q{CALL idem_rotate('inbox')});
        is(sql('SELECT count(*) FROM inbox_g0'), 0, "$what: what has expired is emptied");
    }
}

$node->stop;
done_testing();
